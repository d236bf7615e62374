// A real PostgreSQL: scripts/with_postgres.py starts one and names it in TIDEGATE_TEST_DSN.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { Pool } = require("pg");
const { Gate, Shed, gatePool } = require("../lib/index.js");
const { outcomeOfQuery } = require("../lib/pg.js");

const DSN = process.env.TIDEGATE_TEST_DSN;
const postgres = (name, run) => test(name, { skip: DSN ? false : "no PostgreSQL: TIDEGATE_TEST_DSN is not set" }, run);

/** A pool behind a gate, ended with the test. */
function open(context, limit, settings = {}) {
  const gate = new Gate("db", limit);
  const pool = gatePool(new Pool({ connectionString: DSN, max: 4, ...settings }), gate);
  context.after(() => pool.end());
  return { gate, pool };
}

postgres("queries pass the gate, and give their permits back", async (context) => {
  const { gate, pool } = open(context, 2);
  assert.deepEqual((await pool.query("select $1::int as n", [7])).rows, [{ n: 7 }]);
  await assert.rejects(pool.query("select nonsense"), { code: "42703" });
  const { inFlight, admitted, released } = gate.stats();
  assert.deepEqual(
    { inFlight, admitted: admitted.critical, released },
    {
      inFlight: 0,
      admitted: 2,
      released: { success: 2, overload: 0, ignore: 0 },
    },
  );
});

postgres("who is shed gets no connection, and opens none", async (context) => {
  const { gate, pool } = open(context, 1);
  const client = await pool.connect();
  await assert.rejects(pool.query("select 1"), Shed);
  await assert.rejects(pool.connect(), Shed);
  assert.equal(pool.totalCount, 1);
  assert.equal(pool.waitingCount, 0, "nobody waits");
  client.release();
  assert.equal(gate.inFlight, 0);
  assert.throws(() => client.release(), /already been released|Release called/);
  assert.equal((await pool.query("select 1 as n")).rows[0].n, 1);
});

postgres("callbacks are called as ever", async (context) => {
  const { gate, pool } = open(context, 1);
  await new Promise((resolve, reject) => {
    pool.connect((error, client, done) => {
      if (error) return reject(error);
      pool.query("select 1", (shed) => {
        done();
        try {
          assert.ok(shed instanceof Shed);
          assert.equal(client.release === undefined, false);
          resolve();
        } catch (failure) {
          reject(failure);
        }
      });
    });
  });
  const result = await new Promise((resolve, reject) =>
    pool.query("select 2 as n", (error, answer) => (error ? reject(error) : resolve(answer))),
  );
  assert.equal(result.rows[0].n, 2);
  assert.equal(gate.inFlight, 0);
});

postgres("a statement that takes too long is overload, one that was called off says nothing", async (context) => {
  const { gate, pool } = open(context, 2);
  const client = await pool.connect();
  await client.query("set statement_timeout = '20ms'");
  const late = await client.query("select pg_sleep(10)").catch((error) => error);
  client.release(late);
  assert.equal(late.code, "57014");
  assert.deepEqual(gate.stats().released, { success: 0, overload: 1, ignore: 0 });

  const victim = await pool.connect();
  const { rows } = await victim.query("select pg_backend_pid() as pid");
  const called = victim.query("select pg_sleep(10)").catch((error) => error);
  const other = await pool.connect();
  const sleeping = "select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'";
  while ((await other.query(sleeping, [rows[0].pid])).rowCount === 0);
  await other.query("select pg_cancel_backend($1)", [rows[0].pid]);
  victim.release(await called);
  other.release();
  assert.deepEqual(gate.stats().released, { success: 1, overload: 1, ignore: 1 });
});

postgres("a pool that has no connection in time is overload", async (context) => {
  const { gate, pool } = open(context, 4, { max: 1 });
  const client = await pool.connect();
  pool.options.connectionTimeoutMillis = 20;
  await assert.rejects(pool.query("select 1"), /timeout exceeded when trying to connect/);
  client.release();
  assert.deepEqual(gate.stats().released, { success: 1, overload: 1, ignore: 0 });
});

test("a database that is not there says nothing of its load", async (context) => {
  const gate = new Gate("db", 1);
  const pool = gatePool(new Pool({ host: "127.0.0.1", port: 1, user: "nobody" }), gate);
  context.after(() => pool.end());
  await assert.rejects(pool.query("select 1"), { code: "ECONNREFUSED" });
  await assert.rejects(pool.connect(), { code: "ECONNREFUSED" });
  assert.deepEqual(gate.stats().released, { success: 0, overload: 0, ignore: 2 });
});

postgres("a storm of queries leaves nothing, and the limit holds", async (context) => {
  const { gate, pool } = open(context, 3);
  const outcomes = await Promise.all(
    Array.from({ length: 400 }, (_, number) =>
      new Promise((resolve) => setTimeout(resolve, number % 40))
        .then(() => pool.query(number % 7 === 0 ? "select 1/0" : "select 1"))
        .then(
          () => "answered",
          (error) => (error instanceof Shed ? "shed" : error.code),
        ),
    ),
  );
  const { admitted, released, shed, inFlight, highWater } = gate.stats();
  const count = (outcome) => outcomes.filter((each) => each === outcome).length;
  assert.equal(count("answered") + count("22012"), admitted.critical);
  assert.equal(count("shed"), shed.critical.limit);
  assert.equal(released.success, admitted.critical);
  assert.equal(inFlight, 0);
  assert.ok(highWater <= 3);
});

test("what PostgreSQL and its client say is told apart", () => {
  const cases = {
    overload: [
      ...["53300", "53100", "57P03", "55P03", "ETIMEDOUT"].map((code) => ({ code })),
      { code: "57014", message: "canceling statement due to statement timeout" },
      { message: "timeout exceeded when trying to connect" },
      { message: "Connection terminated due to connection timeout" },
      { message: "Query read timeout" },
      { name: "TimeoutError" },
    ],
    ignore: [
      { code: "57014", message: "canceling statement due to user request" },
      { code: "57014" },
      { name: "AbortError" },
    ],
    success: [
      ...["42703", "23505", "5330", "533000", "157P03", "57P01"].map((code) => ({ code })),
      { code: "42601", message: "Query read timeout" },
      { message: "something else" },
      {},
    ],
  };
  for (const [outcome, errors] of Object.entries(cases)) {
    for (const error of errors) assert.equal(outcomeOfQuery(error), outcome, JSON.stringify(error));
  }
});

test("a callback is told of a shed as pg tells of errors, and later", async () => {
  const pool = gatePool(new Pool(), new Gate("db", 0));
  let later = false;
  const said = new Promise((resolve) => pool.connect((...given) => resolve({ given, later })));
  later = true;
  const { given, later: wasLater } = await said;
  assert.ok(given[0] instanceof Shed && wasLater);
  assert.deepEqual([given[1], given.length, given[2]()], [undefined, 3, undefined]);
});

test("one gate a pool", () => {
  const pool = new Pool();
  const gate = new Gate("db", 1);
  gatePool(pool, gate);
  assert.throws(() => gatePool(pool, gate), { name: "TypeError", message: /this pool has a gate already/ });
  for (const none of [{}, null, undefined]) {
    assert.throws(() => gatePool(none, gate), { name: "TypeError", message: /gatePool needs a Pool/ });
  }
});

test("whatever an odd pool throws or rejects with, it is passed on and no permit is lost", async () => {
  const odd = [undefined, null, "text", { code: "57014", message: 7 }, { code: Symbol("odd") }, new Error()];
  for (const fault of odd) {
    const gate = new Gate("db", 5);
    const rejects = gatePool({ connect: () => Promise.reject(fault) }, gate);
    assert.equal(await rejects.connect().catch((error) => error), fault);
    const throws = gatePool(
      {
        connect: () => {
          throw fault;
        },
      },
      gate,
    );
    let thrown = "nothing";
    try {
      throws.connect(() => assert.fail("called back"));
    } catch (error) {
      thrown = error;
    }
    assert.equal(thrown, fault);
    assert.deepEqual([gate.inFlight, gate.stats().released.ignore], [0, 2]);
  }
});

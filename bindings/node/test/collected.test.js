// Needs --expose-gc.

const assert = require("node:assert/strict");
const { setImmediate: turn } = require("node:timers/promises");
const { test } = require("node:test");
const { Gate, Gates } = require("../lib/index.js");

/** Collects until it is so; finalizers run some turns of the event loop later. */
async function until(holds) {
  for (let tries = 0; tries < 1000 && !holds(); tries += 1) {
    global.gc();
    await turn();
  }
  assert.ok(holds());
}

test("D36 a permit that was forgotten is given back once, and counted", async () => {
  const gate = new Gate("db", 1_000_000);
  const one = (count) => {
    const permit = gate.admit();
    if (count % 10 === 0) permit.release();
  };
  for (let count = 0; count < 1_000; count += 1) one(count);
  one(0); // nothing on the stack holds the last that was forgotten
  await until(() => gate.inFlight === 0);
  const { collected, released, admitted } = gate.stats();
  assert.deepEqual(
    { collected, released, admitted: admitted.critical },
    {
      collected: 900,
      released: { success: 101, overload: 0, ignore: 900 },
      admitted: 1_001,
    },
  );
});

test("D36 releases and collections together make one release each", async () => {
  const gate = new Gate("db", 1_000_000);
  const rounds = 100_000;
  for (let count = 0; count < rounds; count += 1) {
    const permit = gate.admit();
    permit.release();
    permit.release();
    if (count % 10_000 === 0) global.gc();
  }
  await until(() => gate.inFlight === 0);
  assert.deepEqual(gate.stats().released, { success: rounds, overload: 0, ignore: 0 });
  assert.equal(gate.stats().collected, 0);
});

test("a permit keeps its gate, and a gate of a file its file", async () => {
  const permit = new Gate("db", 1).admit();
  const gate = Gates.parse("[gates.db]\nlimit = 1").get("db");
  for (let tries = 0; tries < 20; tries += 1) {
    global.gc();
    await turn();
  }
  assert.equal(permit.weight, 1);
  assert.equal(permit.release(), true);
  assert.equal(
    gate.runSync(() => gate.limit),
    1,
  );
});

const timed = "[gates.db]\nlimit = 1\ntiming = true";
const LEFT = {
  gates: () => new Gate("db", 1, { timing: true }),
  "gates of a file": () => Gates.parse(timed).get("db"),
  "gates with a permit out": () => new Gate("db", 1, { timing: true }).admit(),
};

for (const [what, make] of Object.entries(LEFT)) {
  test(`D36 ${what} that nobody holds any more leave no memory behind`, async () => {
    const rounds = async (count) => {
      for (let round = 0; round < count; round += 1) {
        for (let each = 0; each < 100; each += 1) make();
        global.gc();
        await turn();
      }
    };
    await rounds(5);
    const before = process.memoryUsage.rss();
    await rounds(25); // 2,500 of 32 KiB and more each
    const grown = process.memoryUsage.rss() - before;
    assert.ok(grown < 40_000_000, `${grown} bytes`);
  });
}

test("a drain hears of what was forgotten", async () => {
  const gate = new Gate("db", 1);
  (() => gate.admit())();
  const drained = gate.drain();
  const collecting = setInterval(global.gc, 1);
  assert.equal(await drained, true);
  clearInterval(collecting);
});

test("a storm of promises leaves nothing, and the limit holds", async () => {
  const gate = new Gate("db", 7);
  let inside = 0;
  let most = 0;
  let shed = 0;
  const one = async (number) => {
    try {
      await gate.run(
        async () => {
          inside += 1;
          most = Math.max(most, inside);
          for (let turns = number % 5; turns > 0; turns -= 1) await turn();
          inside -= 1;
          if (number % 11 === 0) throw new Error("failed");
        },
        { priority: number % 3 === 0 ? "sheddable" : "critical" },
      );
    } catch (error) {
      if (error.name === "Shed") shed += 1;
      else assert.equal(error.message, "failed");
    }
  };
  for (let wave = 0; wave < 200; wave += 1) {
    await Promise.all(Array.from({ length: 50 }, (_, number) => one(number)));
  }
  const stats = gate.stats();
  const sum = (counts) => Object.values(counts).reduce((total, count) => total + count, 0);
  const admitted = sum(stats.admitted);
  assert.equal(admitted + shed, 200 * 50);
  assert.equal(sum(stats.released), admitted);
  assert.equal(stats.inFlight, 0);
  assert.ok(most <= 7 && stats.highWater === 7, `${most}, ${stats.highWater}`);
});

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { ConfigError, Gate, Gates, Shed, TidegateError, outcomeOf, usePriority } = require("../lib/index.js");
const native = require("./support/native.js");

const error = (name, extra = {}) => Object.assign(new Error(name), { name }, extra);

test("run gives its permit back whatever the work comes to, once", async () => {
  const gate = new Gate("db", 2);
  assert.equal(await gate.run(async () => gate.inFlight), 1);
  assert.equal(await gate.run(() => 7), 7, "work that is no promise");
  const failure = new Error("no such table");
  await assert.rejects(
    gate.run(() => Promise.reject(failure)),
    (got) => got === failure,
  );
  await assert.rejects(
    gate.run(() => {
      throw failure;
    }),
    (got) => got === failure,
  );
  await assert.rejects(gate.run(() => Promise.reject(error("TimeoutError"))));
  await assert.rejects(gate.run(() => Promise.reject(error("AbortError"))));
  const { inFlight, released, admitted } = gate.stats();
  assert.deepEqual(
    { inFlight, released, admitted: admitted.critical },
    {
      inFlight: 0,
      released: { success: 4, overload: 1, ignore: 1 },
      admitted: 6,
    },
  );
});

test("who is shed is told so, and the work is not begun", async () => {
  const gate = new Gate("db", 1);
  const permit = gate.admit();
  let begun = false;
  const work = () => {
    begun = true;
  };
  const isShed = (shed) => shed instanceof Shed && shed instanceof TidegateError && shed.reason === "limit";
  await assert.rejects(gate.run(work), isShed);
  assert.throws(() => gate.runSync(work), isShed);
  assert.throws(() => gate.admit(), isShed);
  assert.equal(gate.tryAdmit(), null);
  assert.equal(begun, false);
  assert.equal(gate.stats().shed.critical.limit, 4);
  assert.equal(permit.release(), true);
});

test("a shed says why, and has no stack", () => {
  const gate = new Gate("db", 1, { rate: "1/h" });
  const permit = gate.admit();
  const shed = caught(() => gate.admit({ priority: "sheddable" }));
  const { gate: name, reason, priority, inFlight, limit } = shed;
  assert.deepEqual(
    { name, reason, priority, inFlight, limit },
    {
      name: "db",
      reason: "limit",
      priority: "sheddable",
      inFlight: 1,
      limit: 1,
    },
  );
  assert.equal(shed.message.split(";")[0], "gate 'db' full: 1 of 1 in flight (priority sheddable)");
  assert.equal(shed.stack.split("\n").length, 1);
  assert.match(shed.retryAfterHeader, /^[1-9]\d*$/);
  permit.release();
  assert.match(caught(() => gate.admit()).message, /^gate 'db' over its rate of 1\/h \(burst 1\): 0 of 1 in flight/);
  gate.close();
  assert.equal(caught(() => gate.admit()).message, "gate 'db' is closed");
  assert.equal(caught(() => gate.admit({ weight: 2 })).retryAfter, Number.POSITIVE_INFINITY);
});

test("a stack trace limit that was set stays set", () => {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 7;
  caught(() => new Gate("db", 0).admit());
  assert.equal(Error.stackTraceLimit, 7);
  Error.stackTraceLimit = before;
});

test("runSync refuses work that is not done when it returns, and gives the permit back", () => {
  const gate = new Gate("db", 1);
  assert.throws(() => gate.runSync(async () => 1), { name: "TypeError", message: /returned a promise/ });
  assert.equal(gate.inFlight, 0);
  for (const nothing of [undefined, null]) {
    assert.equal(
      gate.runSync(() => nothing),
      nothing,
    );
  }
  const { success } = gate.stats().released;
  for (const name of ["TimeoutError", "AbortError", "Error"]) {
    const thrower = () => {
      throw error(name);
    };
    assert.throws(() => gate.runSync(thrower), { name });
  }
  assert.deepEqual(gate.stats().released, { success: success + 1, overload: 1, ignore: 1 });
  assert.equal(
    gate.runSync(() => 3),
    3,
  );
});

test("a priority that is in use goes with the work, across awaits, and no further", async () => {
  const gate = new Gate("db", 4);
  const ask = async () => {
    await null;
    return gate.run(() => 1);
  };
  await Promise.all([usePriority("sheddable", ask), usePriority("essential", ask), ask()]);
  usePriority("sheddable", () => gate.tryAdmit({ priority: "critical_plus" }).release());
  const { admitted, fallbackPriority } = gate.stats();
  assert.deepEqual(admitted, { critical_plus: 1, critical: 2, sheddable_plus: 0, sheddable: 1 });
  assert.equal(fallbackPriority, 1);
  assert.throws(() => usePriority("urgent", ask), /priority must be one of .*, got "urgent"/);
});

test("errors are told apart", () => {
  const cases = [
    [error("TimeoutError"), "overload"],
    [error("Error", { code: "ETIMEDOUT" }), "overload"],
    [error("Error", { code: "UND_ERR_HEADERS_TIMEOUT" }), "overload"],
    [error("AbortError"), "ignore"],
    [caught(() => new Gate("other", 0).admit()), "ignore"],
    [error("Error"), "success"],
    ["a string", "success"],
    [undefined, "success"],
    [new AggregateError([error("AbortError"), error("TimeoutError")]), "overload"],
    [new AggregateError([error("AbortError")]), "ignore"],
    [new AggregateError([error("AbortError"), error("Error")]), "success"],
    [new AggregateError([]), "success"],
  ];
  for (const [given, outcome] of cases) assert.equal(outcomeOf(given), outcome, String(given));
});

test("a gate's own outcomes come first, and their faults change nothing", async () => {
  const own = (given) => {
    if (given.message === "busy") return "overload";
    if (given.message === "worse") throw new Error("a fault in outcomeOf");
    return given.message === "odd" ? "so-so" : undefined;
  };
  const gate = new Gate("db", 1, { outcomeOf: own });
  for (const message of ["busy", "worse", "odd", "else"]) {
    await assert.rejects(
      gate.run(() => Promise.reject(new Error(message))),
      { message },
    );
  }
  assert.deepEqual(gate.stats().released, { success: 3, overload: 1, ignore: 0 });
});

test("D16 numbers are never cut to size", async () => {
  const gate = new Gate("db", 5);
  const wrong = [-1, 2 ** 31, 2 ** 32, 2 ** 32 + 5, 2 ** 53 + 1, 1.5, Number.NaN, Number.POSITIVE_INFINITY];
  const wrongBig = [-1n, 2n ** 31n, 2n ** 32n + 5n, 2n ** 53n + 1n, 2n ** 64n, 2n ** 64n + 5n];
  const noNumbers = ["5", null, true, {}, [], Symbol("5")];
  for (const value of [...wrong, ...wrongBig, ...noNumbers]) {
    const refused = { name: "RangeError", message: /must be a whole number/ };
    assert.throws(() => gate.setLimit(value), refused);
    assert.throws(() => gate.tryAdmit({ weight: value }), refused);
    assert.throws(() => gate.retryAfter({ weight: value }), refused);
    assert.throws(() => new Gate("db", value), refused);
    assert.throws(() => gate.setThresholds({ sheddable: { reserve: value } }), /a reserve must be a whole number/);
    assert.throws(() => gate.setRate("1/s", { burst: value }), /burst must be a whole number/);
    if (typeof value !== "bigint") {
      assert.throws(() => gate.setThresholds({ sheddable: value === true ? 2 : value }), RangeError);
    }
  }
  const weights = /^RangeError: weight must be a whole number from 1 to 2147483647, got 0$/;
  assert.throws(() => gate.tryAdmit({ weight: 0 }), weights);
  assert.throws(() => gate.retryAfter({ weight: 0 }), weights);
  const reserves = /^RangeError: a reserve must be a whole number from 0 to 2147483647$/;
  assert.throws(() => gate.setThresholds({ sheddable: { reserve: -1 } }), reserves);
  assert.throws(() => gate.setLimit(-1), /^RangeError: limit must be a whole number from 0 to 2147483647, got -1$/);
  assert.throws(() => gate.setRate("1/s", { burst: 0 }), /burst must be a whole number from 1 to 2147483647, got 0$/);
  assert.equal(gate.limit, 5);
  assert.deepEqual(gate.stats().generation, 0, "nothing was changed");
  assert.equal(gate.stats().admitted.critical, 0);
  for (const value of [0, 0n, 2 ** 31 - 1, 2n ** 31n - 1n]) {
    gate.setLimit(value, { cause: "a test" });
    assert.equal(gate.limit, Number(value));
  }
  const permit = gate.tryAdmit({ weight: 2n ** 31n - 1n });
  assert.equal(permit.weight, 2 ** 31 - 1);
  permit.release();
  for (const value of [-1, Number.NaN, "5", null]) {
    await assert.rejects(gate.drain({ timeout: value }), /timeout must be a number of seconds from 0/);
  }
  assert.equal(gate.stats().closed, false, "a wrong timeout closes nothing");
});

test("D35 names are what they are, or refused", () => {
  for (const name of ["a\0b", "", "a\nb", "x".repeat(256), "\u{1f4a5}".repeat(64), "\ud800", "a\udc00b"]) {
    assert.throws(() => new Gate(name, 1), RangeError, JSON.stringify(name));
  }
  for (const name of ["\u{1f40d} é /..", "x".repeat(255), "'\"\\", "x", "x_total", "x"]) {
    assert.equal(new Gate(name, 1).name, name);
  }
  for (const name of [7, undefined, null]) assert.throws(() => new Gate(name, 1), /name must be a string/);
  assert.throws(() => Gates.open("a\0b"), /path must not contain NUL/);
  assert.throws(() => new Gate("db", 1).setLimit(2, { cause: "a\0b" }), /cause must not contain NUL/);
});

test("a slip of the pen is no option", async () => {
  assert.throws(() => new Gate("db", 1, { treshold: {} }), /unknown option treshold/);
  assert.throws(() => new Gate("db", 1).tryAdmit({ prio: "critical" }), /unknown option prio/);
  assert.throws(() => new Gate("db", 1).tryAdmit("critical"), /options must be an object/);
  await assert.rejects(new Gate("db", 1).run(), /^TypeError: work must be a function/);
  for (const outcomeOf of [null, "overload", {}]) {
    assert.throws(() => new Gate("db", 1, { outcomeOf }), /^TypeError: outcomeOf must be a function/);
  }
});

test("a flag is true or false, and nothing that is like it", () => {
  const gate = new Gate("db", 1);
  for (const value of ["no", 0, 1, {}]) {
    const refused = { name: "TypeError", message: /(enforce|timing) must be true or false, got / };
    assert.throws(() => new Gate("db", 1, { enforce: value }), refused);
    assert.throws(() => new Gate("db", 1, { timing: value }), refused);
    assert.throws(() => gate.setEnforce(value), refused);
  }
  assert.throws(() => gate.setEnforce(null), TypeError);
  assert.equal(gate.stats().enforce, true);
});

test("a permit says what it was admitted with, and leaves once", () => {
  const gate = new Gate("db", 3, { enforce: false });
  const facts = ({ priority, weight, over, released }) => ({ priority, weight, over, released });
  const permit = gate.admit({ priority: "sheddable_plus", weight: 2 });
  const beyond = gate.admit({ weight: 3 });
  const unread = gate.admit();
  assert.deepEqual(facts(permit), { priority: "sheddable_plus", weight: 2, over: false, released: false });
  assert.deepEqual(facts(beyond), { priority: "critical", weight: 3, over: true, released: false });
  assert.throws(() => permit.release("failed"), RangeError);
  assert.deepEqual([permit.release(), permit.release(), permit.released], [true, false, true]);
  assert.deepEqual(facts(permit), { priority: "sheddable_plus", weight: 2, over: false, released: true });
  unread[Symbol.dispose]();
  assert.deepEqual(facts(unread), { priority: undefined, weight: undefined, over: undefined, released: true });
  assert.equal(gate.inFlight, 0);
  beyond.release();
});

test("a rate is a count and a unit, or refused", () => {
  const gate = new Gate("db", 1, { rate: "5/h" });
  const huge = ["9223372036854775808/s", "18446744073709551617/s", "99999999999999999999/min"];
  for (const rate of [
    ...huge,
    "5",
    "5/d",
    "/s",
    "-5/s",
    "5.5/s",
    " 5/s",
    "5/s ",
    "5/ s",
    "0x5/s",
    "",
    5,
    5n,
    true,
    {},
  ]) {
    const refused = {
      name: "RangeError",
      message: /^rate must be COUNT\/UNIT with a whole COUNT and the UNIT s, min or h/,
    };
    assert.throws(() => gate.setRate(rate), refused);
    assert.throws(() => new Gate("db", 1, { rate }), refused);
  }
  assert.throws(
    () => gate.setRate("10000000001/s"),
    /a rate's count must be from 0 to 10000000000, got "10000000001\/s"/,
  );
  assert.deepEqual(gate.rate, { count: 5, unit: "h", burst: 1 }, "nothing was changed");
  gate.setRate("10000000000/min", { burst: 2n });
  assert.deepEqual(gate.rate, { count: 10_000_000_000, unit: "min", burst: 2 });
  for (const none of [null, undefined]) {
    gate.setRate(none);
    assert.equal(gate.rate, null);
  }
  assert.throws(() => gate.setRate(null, { burst: 2 }), {
    name: "RangeError",
    message: /burst needs a rate, got 2 without/,
  });
});

test("a share is exact, and nothing is one", () => {
  const million = new Gate("db", 1_000_000, { thresholds: { sheddable: 0.57 } }); // 0.57 * 1e6 is below 570000
  assert.equal(million.stats().thresholds.sheddable, 570_000);
  const rule = /a threshold must be a fraction of the limit from 0 to 1, got 1.1$/;
  assert.throws(() => million.setThresholds({ sheddable: 1.1 }), rule);
  const gate = new Gate("db", 10, { thresholds: { sheddable: 0, sheddable_plus: 0.25 } });
  assert.deepEqual(gate.stats().thresholds, { critical_plus: 10, critical: 10, sheddable_plus: 3, sheddable: 0 });
});

test("a fault inside the library is an error, not the end", () => {
  const gate = new Gate("db", 1);
  native.panicNext();
  assert.throws(() => gate.admit(), TidegateError);
  native.fullNext();
  assert.throws(() => gate.admit(), TidegateError);
  assert.equal(gate.inFlight, 0);
  gate.admit().release();
});

test("drain waits for what is inside, closes, and gives up after its time", async () => {
  const gate = new Gate("db", 2);
  const permit = gate.admit();
  assert.equal(await gate.drain({ timeout: 0 }), false);
  assert.equal(gate.stats().closed, true);
  const drained = gate.drain();
  permit.release();
  assert.equal(await drained, true);
  assert.equal(await gate.drain(), true);
});

test("what is measured of permits is told", () => {
  native.setClock(0);
  const gate = new Gate("db", 2, { timing: true });
  const permit = gate.admit();
  native.setClock(1_000_000_000);
  permit.release();
  assert.ok(Math.abs(gate.latency(0.5, "critical") - 1) < 0.02);
  assert.equal(gate.latency(0.5, "sheddable"), null);
  assert.throws(() => gate.latency(2, "critical"), /q must be from 0 to 1 and a priority named, got 2 and "critical"$/);
  const quick = new Gate("db", 2, { timing: true });
  for (const priority of ["critical", "sheddable"]) {
    const short = quick.admit({ priority });
    native.setClock(priority === "critical" ? 1_000_000_000 : 1_500_000_000);
    short.release();
  }
  assert.ok(quick.latency(1, "critical") < 0.00001 && quick.latency(1, "critical") !== null, "hardly any time");
  assert.ok(Math.abs(quick.latency(1, "sheddable") - 0.5) < 0.01);
  assert.equal(new Gate("db", 2).stats().timing, false);
  assert.throws(() => gate.latency(0.5), RangeError);
  assert.equal(gate.stats().occupancySeconds, 1);
});

test("gates of a file are theirs, by name", () => {
  const gates = Gates.parse('[gates.db]\nlimit = 3\n[gates."ä / b"]\nlimit = 4\n');
  assert.deepEqual(gates.names(), ["db", "ä / b"]);
  assert.equal(gates.get("db"), gates.get("db"), "the same object");
  assert.equal(gates.get("ä / b").limit, 4);
  assert.throws(() => gates.get("other"), /the file has no gate "other"/);
  assert.throws(() => gates.get(""), /the file has no gate ""/);
  assert.throws(() => new Gates(), { name: "TypeError", message: /make Gates with/ });
  assert.throws(() => Gates.parse("", { file: "a\0b" }), /file must not contain NUL/);
  const match =
    '[classifier]\n[[classifier.rules]]\nmatch = { path = ["undefined", "null"] }\npriority = "sheddable"\n';
  const rules = Gates.parse(match);
  assert.deepEqual([rules.classify({ path: undefined }), rules.classify({ path: null })], [undefined, undefined]);
  assert.equal(rules.classify({ path: "null" }), "sheddable");
  assert.throws(() => gates.classify({ "a\0": "x" }), /must not contain NUL/);
  assert.throws(() => Gates.open("/no/such/file.toml"), ConfigError);
  assert.equal(gates.classify({ path: "\ud800", user: undefined, other: null }), undefined);
  assert.deepEqual(gates.reloadText('[gates.db]\nlimit = 5\n[gates."ä / b"]\nlimit = 4\n'), ["gate db: limit 3 -> 5"]);
});

function caught(call) {
  try {
    call();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("nothing was thrown");
}

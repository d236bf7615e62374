// Signals, on the manual clock.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { ConfigError, Gate, Gates, Shed } = require("../lib/index.js");
const { SECOND, aSecond } = require("./support/seconds.js");
const { setClock } = require("./support/native.js");

/** Overloaded at once, and sheds at once. */
const WAITS = {
  ...{ kind: "pushed", name: "waits", enter: 0.8, leave: 0.6, full: 0.9 },
  ...{ enterFor: 0, leaveFor: 1, dwell: 0, ramp: 0 },
};
const QUIET = { value: null, overloaded: false, level: 0, reads: 0, failures: 0, cost: 0 };

test("what is pushed sheds the least important first, while it is good", () => {
  setClock(0);
  const gate = new Gate("db", 20, { signals: [WAITS, { kind: "errors" }] });
  const before = gate.pressure();
  assert.deepEqual(
    { ...before, signals: before.signals.length },
    { level: 0, shares: shares(0, 0, 0, 0), overloaded: false, transitions: 0, signals: 2 },
  );
  const waits = { name: "waits", enter: 0.8, leave: 0.6, full: 0.9 };
  assert.deepEqual(before.signals[0], { ...QUIET, ...waits });
  const errors = { name: "errors", enter: 0.1, leave: 0.05, full: 0.5, reads: 1, failures: 1 };
  assert.deepEqual(before.signals[1], { ...QUIET, ...errors });

  gate.signal("waits", 0.95);
  assert.throws(
    () => gate.admit({ priority: "sheddable" }),
    (shed) => shed instanceof Shed && shed.reason === "pressure" && /shed by pressure/.test(shed.message),
  );
  const now = gate.pressure();
  assert.deepEqual(
    { level: now.level, overloaded: now.overloaded, transitions: now.transitions, shares: rounded(now.shares) },
    { level: 1, overloaded: true, transitions: 1, shares: shares(0.95, 0.95, 1, 1) },
  );
  assert.deepEqual(now.signals[0], { ...QUIET, ...waits, value: 0.95, overloaded: true, level: 1, reads: 1 });
  setClock(1 * SECOND);
  gate.signal("waits", 0.81);
  setClock(2 * SECOND);
  assert.deepEqual(rounded(gate.pressure().shares), shares(0, 0.76, 1, 1));

  setClock(8 * SECOND); // it is unknown now, which is never overload
  gate.admit({ priority: "sheddable" }).release();
  assert.equal(gate.pressure().overloaded, false);
  assert.equal(gate.pressure().signals[0].value, null);
  assert.equal(gate.stats().shed.sheddable.pressure, 1);
});

test("how long a push is good", () => {
  const cases = [
    [undefined, 4.999, true],
    [undefined, 5.001, false],
    [0.001, 0.0005, true],
    [0.0001, 0.0005, true], // rounded up
    [0.069, 0.0685, true],
    [0.069, 0.0695, false], // 0.069 * 1000 is above 69
    [0, 0.001, false],
    [9e12, 1e9, true],
  ];
  for (const [goodFor, seconds, known] of cases) {
    setClock(0);
    const gate = new Gate("db", 20, { signals: [WAITS] });
    gate.signal("waits", 1, ...(goodFor === undefined ? [] : [{ goodFor }]));
    setClock(Math.round(seconds * SECOND));
    assert.equal(gate.pressure().signals[0].value === 1, known, `${goodFor} after ${seconds}`);
  }
});

test("each time of a signal comes where it belongs", () => {
  /** Whether it is overloaded at each second, and at which level, where 1 is pushed until a second, and 0 from then on. */
  const seconds = (times, until) => {
    setClock(0);
    const gate = new Gate("db", 20, { signals: [{ ...WAITS, leaveFor: 0, ...times }] });
    return Array.from({ length: 12 }, (_, second) => {
      setClock(second * SECOND);
      gate.signal("waits", second < until ? 1 : 0, { goodFor: 60 });
      return gate.pressure();
    });
  };
  const overloaded = (times, until) => seconds(times, until).map((is) => (is.signals[0].overloaded ? "1" : "0"));
  assert.equal(overloaded({}, 1).join(""), "110000000000"); // the look at which its level comes down is not yet the last
  assert.equal(overloaded({ enterFor: 2 }, 12).join(""), "001111111111");
  assert.equal(overloaded({ leaveFor: 3 }, 1).join(""), "111100000000");
  assert.equal(overloaded({ dwell: 6 }, 1).join(""), "111111000000");
  assert.equal(overloaded({ ramp: 10 }, 12).join(""), "111111111111");
  const levels = seconds({ ramp: 10 }, 12).map(({ level }) => Math.round(level * 10));
  assert.deepEqual(levels, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]);
});

test("a gate sees of itself what its objective says", () => {
  setClock(0);
  const signals = [{ kind: "errors", enterFor: 0, ramp: 0 }, { kind: "latency" }];
  const gate = new Gate("db", 20, { objective: 2, signals });
  aSecond(gate, 0, 20, "overload");
  setClock(3 * SECOND);
  const { overloaded, level, signals: said } = gate.pressure();
  assert.deepEqual({ overloaded, level, errors: said[0].value }, { overloaded: true, level: 1, errors: 1 });
  assert.ok(Math.abs(said[1].value - 0.5) < 0.01, "a second is half of two");
});

test("without signals there is no pressure, and each kind has its name", () => {
  for (const options of [{}, { signals: [] }, { signals: null }, { signals: undefined }]) {
    assert.equal(new Gate("db", 20, options).pressure(), null);
  }
  const kinds = ["cpu", "memory", "psi-cpu", "psi-memory", "psi-io", "latency", "errors", "pushed"];
  const gate = new Gate("db", 20, { objective: 1, signals: kinds.map((kind) => ({ kind, enter: undefined })) });
  assert.deepEqual(
    gate.pressure().signals.map(({ name }) => name),
    kinds,
  );
  const names = ["\u{1f30a} é", "n".repeat(255)];
  const named = new Gate("db", 20, { signals: names.map((name) => ({ kind: "pushed", name, leave: 0 })) });
  for (const name of names) named.signal(name, 0, { goodFor: 60 });
  assert.deepEqual(
    named.pressure().signals.map(({ name, reads, leave }) => ({ name, reads, leave })),
    names.map((name) => ({ name, reads: 1, leave: 0 })),
    "what is 0 is 0, not the default",
  );
});

test("D16 what is pushed is never cut to size", () => {
  const gate = new Gate("db", 20, { signals: [WAITS, { kind: "errors" }] });
  for (const value of [-0.1, 1.1, 70, Number.NaN, Infinity, -Infinity, 1n, "1", true, null, undefined, {}]) {
    assert.throws(() => gate.signal("waits", value), {
      name: "RangeError",
      message: /^value must be a number from 0 /,
    });
    if (value === 1.1 || value === 70 || value === undefined) continue; // which are times
    assert.throws(() => gate.signal("waits", 1, { goodFor: value }), {
      name: "RangeError",
      message: /^goodFor must be/,
    });
  }
  assert.throws(() => gate.signal("waits", 1, { goodFor: 1e300 }), { name: "RangeError", message: /^goodFor must be/ });
  for (const name of ["", "wait", "errors", "waits\0", "n".repeat(256), "\ud800"]) {
    assert.throws(() => gate.signal(name, 1), RangeError, JSON.stringify(name));
  }
  assert.throws(() => gate.signal("wait", 1), /the gate has no signal "wait" into which values are pushed/);
  assert.throws(() => gate.signal(7, 1), /name must be a string/);
  assert.equal(gate.pressure().signals[0].reads, 0, "nothing was changed");
});

test("what no signal can be", () => {
  const refused = (signals, error, message) =>
    assert.throws(() => new Gate("db", 20, { signals }), { name: error, message });
  const range = RangeError.name;
  for (const value of [-0.1, -1, 1.1, Number.NaN, Infinity, 1n, "1", true, null]) {
    for (const option of ["enter", "leave", "full"]) {
      const message = new RegExp(`^signals\\[1\\]\\.${option} must be a number from 0 to 1, got `);
      refused([WAITS, { kind: "pushed", [option]: value }], range, message);
    }
  }
  for (const value of [-0.1, -1, Number.NaN, -Infinity, 1n, "1", true, null]) {
    for (const option of ["enterFor", "leaveFor", "dwell", "ramp"]) {
      const message = new RegExp(`^signals\\[0\\]\\.${option} must be a number of seconds from 0, got `);
      refused([{ kind: "pushed", [option]: value }], range, message);
    }
  }
  refused([{ kind: "pushed", dwell: Infinity }], range, /signals\[0\]: dwell must be a time in seconds, 0 or more/);
  refused([{ kind: "pushed", enter: 0.7 }], range, /signals\[0\]: a signal's thresholds must be 0 <= leave < enter/);
  for (const kind of [undefined, null, "", "load", "CPU", 1]) {
    refused([{ kind }], range, /^signals\[0\]\.kind must be one of cpu, memory, .*pushed, got /);
  }
  refused([{ kind: "pushed", enter_for: 1 }], "TypeError", /unknown option enter_for; there are kind, name, /);
  for (const other of ["cpu", { kind: "cpu" }, 1]) refused(other, "TypeError", /signals must be an array/);
  refused([null], "TypeError", /options must be an object/);
  refused([{ kind: "pushed", name: "a\0b" }], range, /^signals\[0\]\.name must not contain NUL/);
  refused([{ kind: "pushed", name: 7 }], "TypeError", /^signals\[0\]\.name must be a string/);
  for (const name of ["", "a\nb", "n".repeat(256)]) refused([{ kind: "pushed", name }], range, /name must be 1 to 255/);
  refused([{ kind: "pushed" }, { kind: "pushed" }], ConfigError.name, /"pushed" twice/);
  refused([{ kind: "latency" }], ConfigError.name, /objective/);
});

test("a reload of a file leaves what was pushed", () => {
  const text = "[gates.db]\nlimit = 20\nsignals = [{ kind = 'pushed', name = 'waits' }]\n";
  const gates = Gates.parse(text);
  const gate = gates.get("db");
  gate.signal("waits", 0.5, { goodFor: 60 });
  gates.reloadText(text);
  assert.equal(gate.pressure().signals[0].value, 0.5);
  gates.reloadText("[gates.db]\nlimit = 20\n");
  assert.equal(gate.pressure(), null);
  assert.throws(() => gate.signal("waits", 0.5), RangeError);
});

function shares(criticalPlus, critical, sheddablePlus, sheddable) {
  return { critical_plus: criticalPlus, critical, sheddable_plus: sheddablePlus, sheddable };
}

function rounded(each) {
  return Object.fromEntries(Object.entries(each).map(([name, share]) => [name, Math.round(share * 100) / 100]));
}

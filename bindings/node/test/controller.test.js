// Controllers, on the manual clock.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { ConfigError, Gate, Gates } = require("../lib/index.js");
const { aSecond } = require("./support/seconds.js");
const { setClock } = require("./support/native.js");

const NO_LIMIT = [-1, 2 ** 31, 2 ** 32 + 5, 2 ** 53, 1.5, Number.NaN, Number.POSITIVE_INFINITY, -1n, 2n ** 31n];
const NO_NUMBER = [2n ** 63n, 2n ** 64n - 1n, 2n ** 64n + 5n, "5", true, {}, [], Symbol("5")];
const MAX = 2 ** 31 - 1;

test("a controller moves the limit, and shows why", () => {
  setClock(0);
  const gate = new Gate("db", 20, { controller: { kind: "aimd", min: 4, max: 200n }, objective: 2.5 });
  const none = { elapsed: 0, completions: 0, good: 0, overload: 0, admissions: 0, refusals: 0 };
  assert.deepEqual(gate.controller, {
    ...{ kind: "aimd", min: 4, max: 200, prior: 20, cause: "hold", objective: 2.5, looks: 0, moves: 0, probes: 0 },
    window: none,
  });
  assert.deepEqual(gate.limitHistory(), []);
  for (let second = 0; second < 6; second += 1) aSecond(gate, second, 20, "success");
  const raised = gate.limit;
  for (let second = 6; second < 12; second += 1) aSecond(gate, second, 12, "overload");
  assert.ok(raised > 20 && gate.limit < raised, `${raised}, ${gate.limit}`);
  const { cause, looks, moves, probes, window } = gate.controller;
  assert.deepEqual({ cause, probes, good: window.good }, { cause: "lower", probes: 0, good: 0 });
  assert.ok(looks > moves && window.overload >= 12 && window.completions === window.overload && window.elapsed >= 1);

  const history = gate.limitHistory();
  assert.equal(history.length, moves);
  assert.deepEqual(history[0], { from: 20, to: 21, age: history[0].age, cause: "raise" });
  assert.deepEqual({ ...history.at(-1), age: 0, from: 0 }, { from: 0, to: gate.limit, age: 0, cause: "lower" });
  assert.ok(history[0].age > history.at(-1).age && history[0].age <= 12 && Number.isInteger(history[0].age));

  for (const limit of [0, 3, 201]) {
    const message = `limit must be a whole number from 4 to 200, got ${limit}`;
    assert.throws(() => gate.setLimit(limit), { name: "RangeError", message });
  }
  gate.setLimit(50, { cause: "by hand" });
  assert.equal(gate.controller.prior, 50, "it starts anew");
  assert.deepEqual(gate.limitHistory().at(-1), { from: history.at(-1).to, to: 50, age: 0, cause: "by hand" });

  for (let count = 0; count < 3; count += 1) assert.equal(gate.tryAdmit({ weight: 51 }), null);
  aSecond(gate, 12, 30, "success"); // the first to leave ends the window
  assert.deepEqual(gate.controller.window, {
    ...none,
    elapsed: 1,
    completions: 1,
    good: 1,
    admissions: 30,
    refusals: 3,
  });
  aSecond(gate, 13, 30, "success");
  assert.deepEqual(gate.controller.window, { ...none, elapsed: 1, completions: 30, good: 30, admissions: 30 });
});

test("where a controller starts", () => {
  const cases = [
    [null, {}, 32],
    [undefined, {}, 32],
    [20, {}, 20],
    [20n, { ceiling: 10 }, 10],
    [20, { prior: 29 }, 29],
    [null, { min: 4, max: 200 }, 28],
    [null, { min: 2000 }, 2000],
    [MAX, { max: MAX, prior: undefined }, MAX],
  ];
  for (const [limit, bounds, starts] of cases) {
    const gate = new Gate("db", limit, { controller: { kind: "goodput", ...bounds } });
    assert.equal(gate.limit, starts);
    assert.equal(gate.controller.prior, starts);
    assert.equal(gate.controller.objective, null);
  }
  for (const kind of ["fixed", "aimd", "gradient2", "vegas", "goodput"]) {
    assert.equal(new Gate("db", 3, { controller: { kind } }).controller.kind, kind);
  }
  for (const options of [{}, { controller: null, objective: null }, { controller: undefined, objective: undefined }]) {
    assert.equal(new Gate("db", 3, options).controller, null);
  }
});

test("D16 what moves a limit has no number that is cut to size", () => {
  const refused = (limit, options, expected) => assert.throws(() => new Gate("db", limit, options), expected);
  for (const value of [...NO_LIMIT, ...NO_NUMBER]) {
    refused(value, { controller: { kind: "vegas" } }, { name: "RangeError", message: /^limit must be a whole number/ });
  }
  for (const bound of ["min", "max", "ceiling", "prior"]) {
    for (const value of [...NO_LIMIT, ...NO_NUMBER, null, 0, 0n]) {
      const message = new RegExp(`^controller.${bound} must be a whole number`);
      refused(20, { controller: { kind: "vegas", [bound]: value } }, { name: "RangeError", message });
    }
  }
  for (const objective of [0, -0, -1, Number.NaN, -Infinity, Infinity, 1e300, 1e-10, 2n, "2", true, {}]) {
    refused(20, { objective }, { name: "RangeError", message: /^objective must be/ });
  }
  for (const objective of [1e-9, 1.234567891, 86_400]) {
    assert.equal(new Gate("db", 20, { controller: { kind: "vegas" }, objective }).controller.objective, objective);
  }
});

test("what no controller can be", () => {
  const refused = (limit, controller, error, message) =>
    assert.throws(() => new Gate("db", limit, { controller }), { name: error, message });
  for (const kind of [undefined, null, "", "pid", "AIMD", 2, "none", "constructor"]) {
    refused(20, { kind }, "RangeError", /^controller.kind must be one of fixed, aimd, gradient2, vegas, goodput, got /);
  }
  refused(
    20,
    { kind: "vegas", floor: 4 },
    "TypeError",
    /unknown option floor; there are kind, min, max, ceiling, prior/,
  );
  for (const other of ["aimd", 2, true]) refused(20, other, "TypeError", /options must be an object/);
  const config = ConfigError.name;
  refused(20, { kind: "vegas", min: 30 }, config, /must be from min \(30\) to max \(1000\), got 20/);
  refused(0, { kind: "vegas" }, config, /must be from min \(1\) to max \(1000\), got 0/);
  refused(null, { kind: "vegas", min: 30, ceiling: 5 }, config, /ceiling must be at least min \(30\), got 5/);
  for (const limit of [null, undefined]) {
    refused(limit, undefined, "RangeError", /^limit must be a whole number, got /);
    refused(limit, null, "RangeError", /^limit must be a whole number, got /);
  }
});

test("a history keeps the last 64, and of a cause 63 bytes", () => {
  const gate = new Gate("db", 1000);
  for (let limit = 0; limit < 100; limit += 1) gate.setLimit(limit, { cause: "ü".repeat(limit) });
  const history = gate.limitHistory();
  assert.equal(history.length, 64);
  for (const [at, { from, to, cause }] of history.entries()) {
    assert.deepEqual({ from, to, cause }, { from: 35 + at, to: 36 + at, cause: "ü".repeat(31) });
  }
  gate.setLimit(7);
  assert.equal(gate.limitHistory().at(-1).cause, null);
});

test("a reload of a file leaves what a controller has found", () => {
  setClock(0);
  const text = "[gates.db]\nlimit = 20\nobjective = '2s'\ncontroller = { kind = 'aimd', min = 4 }\n";
  const gates = Gates.parse(text);
  const gate = gates.get("db");
  assert.equal(gate.controller.objective, 2);
  for (let second = 0; second < 4; second += 1) aSecond(gate, second, 20, "success");
  const found = gate.limit;
  assert.ok(found > 20);
  assert.deepEqual(gates.reloadText(text), []);
  assert.equal(gate.limit, found);
  gates.reloadText("[gates.db]\nlimit = 20\n");
  assert.equal(gate.controller, null);
});

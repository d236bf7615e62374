// What a shed says of its future, and how long a drain waits, on clocks that are set by hand.

const assert = require("node:assert/strict");
const { mock, test } = require("node:test");
const { Gate, Shed } = require("../lib/index.js");
const { SECOND } = require("./support/seconds.js");
const { setClock } = require("./support/native.js");

function shedOf(gate, ask) {
  try {
    gate.admit(ask).release();
  } catch (error) {
    assert.ok(error instanceof Shed);
    return error;
  }
  throw new Error("it was admitted");
}

/** The least and the most that its header says. */
function headers(shed) {
  const all = Array.from({ length: 2000 }, () => shed.retryAfterHeader);
  for (const each of all) assert.match(each, /^[1-9]\d*$/);
  return [Math.min(...all), Math.max(...all)];
}

test("a header is whole seconds, rounded up, and up to half as much more", () => {
  setClock(0);
  const gate = new Gate("db", 1000, { rate: "6/min", burst: 1 });
  gate.admit().release();
  setClock(0.5 * SECOND);
  const shed = shedOf(gate);
  assert.equal(shed.retryAfter, 9.5);
  assert.equal(
    shed.message,
    "gate 'db' over its rate of 6/min (burst 1): 0 of 1000 in flight (priority critical); retry in about 9.5 s",
  );
  assert.deepEqual(headers(shed), [10, 15]);
  setClock(0.54321 * SECOND);
  assert.match(shedOf(gate).message, /; retry in about 9\.5 s$/);
  setClock(9.4 * SECOND);
  assert.deepEqual(headers(shedOf(gate)), [1, 2]);
});

test("what never fits may fit in a minute, and what is unknown in a second", () => {
  setClock(0);
  const gate = new Gate("db", 1);
  const never = shedOf(gate, { weight: 2 });
  assert.equal(never.retryAfter, Number.POSITIVE_INFINITY);
  assert.match(never.message, /\(priority critical\); no retry can succeed$/);
  assert.deepEqual(headers(never), [60, 90]);
  const permit = gate.admit();
  const unknown = shedOf(gate);
  assert.equal(unknown.retryAfter, null);
  assert.equal(unknown.rate, null);
  assert.match(unknown.message, /\(priority critical\)$/);
  assert.deepEqual(headers(unknown), [1, 2]);
  const later = shedOf(gate);
  permit.release();
  assert.equal(later.retryAfter, 0, "it is worked out when it is asked for");
  assert.deepEqual(headers(later), [1, 2]);
  gate.close();
  const closed = shedOf(gate);
  assert.equal(closed.retryAfter, Number.POSITIVE_INFINITY);
  assert.deepEqual(headers(closed), [1, 2], "another process may take over at once");
});

test("nobody is told to stay away for more than a day, and half a day", () => {
  setClock(0);
  const gate = new Gate("db", 100, { rate: "1/h", burst: 100 });
  gate.admit({ weight: 100 }).release();
  const shed = shedOf(gate, { weight: 100 });
  assert.equal(shed.retryAfter, 360_000);
  const [least, most] = headers(shed);
  assert.ok(least >= 86_400 && least < 90_000 && most > 125_000 && most <= 129_600, `${least} to ${most}`);
});

test("a drain hears of a release at once, and looks no longer than it may", async (context) => {
  mock.timers.enable({ apis: ["setInterval"] }); // which nobody winds but this test
  context.after(() => mock.timers.reset());
  const gate = new Gate("db", 1);
  const permit = gate.admit();
  const patient = gate.drain({ timeout: 3600 });
  const hasty = gate.drain({ timeout: 0.001 });
  const until = performance.now() + 1.1;
  while (performance.now() < until);
  mock.timers.tick(100);
  assert.equal(await hasty, false);
  permit.release();
  assert.equal(await patient, true);
});

// What a gate watches besides its limit: what a configuration takes, and what comes of it.

const abi = require("./abi.js");
const args = require("./arguments.js");
const { PRIORITIES, SIGNALS, shown } = require("./words.js");

const SHARES = { enter: "enter", leave: "leave", full: "full" };
const TIMES = { enterFor: "enter_for", leaveFor: "leave_for", dwell: "dwell", ramp: "ramp" };
const OPTIONS = ["kind", "name", ...Object.keys(SHARES), ...Object.keys(TIMES)];

/** The signals in the C ABI, where a negative number is its default; so none that is said may be. */
function signals(given) {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given)) throw new TypeError(`signals must be an array, got ${shown(given)}`);
  return given.map((options, at) => signal(options, `signals[${at}]`));
}

function signal(options, where) {
  args.known(options, OPTIONS);
  const { kind, name } = options;
  const config = { struct_size: abi.sizes.signalConfig, kind: args.oneOf(SIGNALS, kind, `${where}.kind`), name: null };
  if (name !== undefined) config.name = args.withoutNul(name, `${where}.name`);
  const said = (fields, read) => {
    for (const [option, field] of Object.entries(fields)) {
      config[field] = options[option] === undefined ? -1 : read(options[option], `${where}.${option}`);
    }
  };
  said(SHARES, args.share);
  said(TIMES, args.seconds);
  return config;
}

/** Pushes a value that is good for so many seconds. */
function push(pointer, name, value, goodFor) {
  const { data, length } = args.utf8(name, "name");
  const milliseconds = args.milliseconds(goodFor, "goodFor");
  const status = abi.signal(pointer, data, length, args.share(value, "value"), milliseconds);
  abi.check(status, () => `the gate has no signal ${shown(name)} into which values are pushed`);
}

/** What the gate's signals come to; null where there are none. */
function pressure(pointer) {
  const read = { struct_size: abi.sizes.pressure };
  abi.check(abi.getPressure(pointer, read), () => "pressure");
  if (Number(read.signals) === 0) return null;
  return Object.freeze({
    level: read.level,
    shares: Object.fromEntries(PRIORITIES.map((name, level) => [name, read.shares[level]])),
    overloaded: read.overloaded,
    transitions: Number(read.transitions),
    signals: abi.each(abi.getSignal, abi.sizes.signalReport, pointer).map(signalReport),
  });
}

function signalReport(read) {
  return Object.freeze({
    name: read.name,
    value: read.value < 0 ? null : read.value,
    overloaded: read.overloaded,
    level: read.level,
    enter: read.enter,
    leave: read.leave,
    full: read.full,
    reads: Number(read.reads),
    failures: Number(read.failures),
    cost: read.cost,
  });
}

module.exports = { pressure, push, signals };

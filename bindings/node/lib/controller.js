// What moves a gate's limit: what a configuration takes, and what a controller is at.

const abi = require("./abi.js");
const args = require("./arguments.js");
const { CAUSES, CONTROLLERS, shown } = require("./words.js");

const OPTIONS = ["kind", "min", "max", "ceiling", "prior"];
const NONE = Object.freeze({ kind: 0, reserved: 0, min: 0, max: 0, ceiling: 0, prior: 0 });

/** The controller in the C ABI, where a bound of 0 is its default; so none that is said may be. */
function controller(options) {
  if (options === undefined || options === null) return NONE;
  args.known(options, OPTIONS);
  const bound = (name) => (options[name] === undefined ? 0 : args.counting(options[name], `controller.${name}`));
  const kind = args.oneOf(CONTROLLERS, options.kind, "controller.kind");
  return { ...NONE, kind, min: bound("min"), max: bound("max"), ceiling: bound("ceiling"), prior: bound("prior") };
}

/** The limit in the C ABI, where -1 is wherever a controller starts; so it is none that may be said. */
function limit(value, controlled) {
  if (controlled && (value === undefined || value === null)) return -1;
  const number = args.whole(value, "limit");
  if (controlled && number < 0) throw new RangeError(limitRule(value));
  return number;
}

/** What a limit that was refused should have been: with a controller from its `min` to its `max`. */
function limitRule(got, { min, max } = { min: 0, max: args.MAX_WEIGHT }) {
  return `limit must be a whole number from ${min} to ${max}, got ${shown(got)}`;
}

/** What the controller is at; null where there is none. */
function controllerReport(pointer) {
  const read = { struct_size: abi.sizes.controllerReport };
  abi.check(abi.getController(pointer, read), () => "controller");
  if (read.kind === 0) return null;
  return Object.freeze({
    kind: CONTROLLERS[read.kind - 1],
    min: read.min,
    max: read.max,
    prior: read.prior,
    cause: CAUSES[read.cause],
    objective: read.objective > 0 ? read.objective : null,
    looks: Number(read.looks),
    moves: Number(read.moves),
    probes: Number(read.probes),
    window: Object.freeze({
      elapsed: read.window,
      completions: Number(read.completions),
      good: Number(read.good),
      overload: Number(read.overload),
      admissions: Number(read.admissions),
      refusals: Number(read.refusals),
    }),
  });
}

/** The last 64 changes of the limit, the latest last. */
function limitHistory(pointer) {
  return abi
    .each(abi.getLimitChange, abi.sizes.limitChange, pointer)
    .map(({ from, to, age, cause }) => Object.freeze({ from, to, age, cause: cause === "" ? null : cause }))
    .reverse();
}

module.exports = { controller, controllerReport, limit, limitHistory, limitRule };

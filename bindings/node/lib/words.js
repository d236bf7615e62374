// The words of every language, and their numbers in the C ABI.

const PRIORITIES = Object.freeze(["critical_plus", "critical", "sheddable_plus", "sheddable"]);
const OUTCOMES = Object.freeze(["success", "overload", "ignore"]);
const REASONS = Object.freeze(["limit", "priority", "rate", "pressure", "closed", "timeout", "share"]);
const CONTROLLERS = Object.freeze(["fixed", "aimd", "gradient2", "vegas", "goodput"]);
const CAUSES = Object.freeze(["hold", "probe", "raise", "lower", "lost"]);
const SIGNALS = Object.freeze(["cpu", "memory", "psi-cpu", "psi-memory", "psi-io", "latency", "errors", "pushed"]);

/** What asks for the gate's default priority. */
const DEFAULT_PRIORITY = 1000;

const ERROR = Object.freeze({
  NULL: -1,
  ARGUMENT: -2,
  STALE: -3,
  PANIC: -4,
  VERSION: -5,
  CONFIG: -6,
  EXHAUSTED: -7,
});

const THRESHOLD = Object.freeze({ DEFAULT: 0, PPM: 1, RESERVE: 2 });

const SECONDS_OF_UNIT = Object.freeze({ s: 1, min: 60, h: 3600 });

const ALIASES = Object.freeze({ essential: "critical", "non-essential": "sheddable" });

const levels = new Map(PRIORITIES.map((name, level) => [name, level]));
for (const [alias, name] of Object.entries(ALIASES)) levels.set(alias, levels.get(name));
const outcomes = new Map(OUTCOMES.map((name, number) => [name, number]));

/** The number of a priority; undefined is the gate's default. */
function levelOf(priority) {
  if (priority === undefined || priority === null) return DEFAULT_PRIORITY;
  const level = levels.get(priority);
  if (level === undefined) {
    throw new RangeError(
      `priority must be one of ${PRIORITIES.join(", ")}, essential, non-essential, got ${shown(priority)}`,
    );
  }
  return level;
}

/** The number of an outcome. */
function numberOfOutcome(outcome) {
  const number = outcomes.get(outcome);
  if (number === undefined) {
    throw new RangeError(`outcome must be one of ${OUTCOMES.join(", ")}, got ${shown(outcome)}`);
  }
  return number;
}

/** A value as an error shows it. */
function shown(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol") return value.toString();
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  return typeof value === "function" ? "a function" : String(value);
}

module.exports = {
  ALIASES,
  CAUSES,
  CONTROLLERS,
  DEFAULT_PRIORITY,
  ERROR,
  OUTCOMES,
  PRIORITIES,
  REASONS,
  SECONDS_OF_UNIT,
  SIGNALS,
  THRESHOLD,
  levelOf,
  numberOfOutcome,
  shown,
};

// What goes wrong, and the shed, which is no fault.

const { randomInt } = require("node:crypto");
const { ERROR } = require("./words.js");

/** The base of all that this package throws of its own accord. */
class TidegateError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** A configuration that breaks a rule; nothing was changed. */
class ConfigError extends TidegateError {}

const MINUTE = 60;
const DAY = 86_400;

/** The request was turned away: try again later. An outcome, not an error. */
class Shed extends TidegateError {
  #ask;
  #retryAfter;

  /**
   * @param {object} facts `gate`, `reason`, `priority`; `inFlight` and `limit` right after the decision; `rate` in
   *   words, null where there is none.
   * @param {() => number | null} ask Works out `retryAfter` when it is first wanted.
   */
  constructor({ gate, reason, priority, inFlight, limit, rate }, ask) {
    super();
    this.gate = gate;
    this.reason = reason;
    this.priority = priority;
    this.inFlight = inFlight;
    this.limit = limit;
    this.rate = rate;
    this.#ask = ask;
    // As every error's: its own, and shown in its stack; but put together only when it is read.
    Object.defineProperty(this, "message", { get: text, configurable: true });
  }

  /** Seconds to stay away; null: unknown; Infinity: no retry can succeed. Worked out once. */
  get retryAfter() {
    if (this.#retryAfter === undefined) this.#retryAfter = this.#ask();
    return this.#retryAfter;
  }

  /** The value of a Retry-After header: whole seconds, at least 1, jittered upwards. */
  get retryAfterHeader() {
    const seconds = this.reason === "closed" ? 1 : wholeSeconds(this.retryAfter);
    return String(seconds + randomInt(0, Math.max(1, Math.floor(seconds / 2)) + 1));
  }
}

function text() {
  if (this.reason === "closed") return `gate '${this.gate}' is closed`;
  const full = `${this.inFlight} of ${this.limit} in flight (priority ${this.priority})`;
  const before = `gate '${this.gate}' ${why(this)}: ${full}`;
  if (this.retryAfter === null) return before;
  if (!Number.isFinite(this.retryAfter)) return `${before}; no retry can succeed`;
  return `${before}; retry in about ${Number(this.retryAfter.toPrecision(2))} s`;
}

function why(shed) {
  if (shed.reason === "limit") return "full";
  if (shed.reason === "rate") return shed.rate ? `over its rate of ${shed.rate}` : "over its rate";
  return `shed by ${shed.reason}`;
}

/** Rounded up, so that nobody returns too early; what is unknown is 1, and what is for ever a minute. */
function wholeSeconds(wait) {
  if (wait === Number.POSITIVE_INFINITY) return MINUTE;
  if (wait === null || !(wait > 0)) return 1;
  return Math.ceil(Math.min(wait, DAY));
}

/** The error that a negative status stands for. */
function errorOf(status, what, statusText) {
  if (status === ERROR.ARGUMENT) return new RangeError(what);
  if (status === ERROR.CONFIG) return new ConfigError(what);
  return new TidegateError(`${what}: ${statusText} (${status})`);
}

module.exports = { ConfigError, Shed, TidegateError, errorOf };

const abi = require("./abi.js");
const args = require("./arguments.js");
const limits = require("./controller.js");
const { Shed, errorOf } = require("./errors.js");
const { Handle } = require("./handle.js");
const { outcomeOf } = require("./outcome.js");
const { Permit } = require("./permit.js");
const pressures = require("./pressure.js");
const { currentPriority } = require("./priority.js");
const { statsOf } = require("./stats.js");
const words = require("./words.js");

/** What may be said when a gate is made. */
const OPTIONS = [
  "thresholds",
  "rate",
  "burst",
  "defaultPriority",
  "enforce",
  "timing",
  "controller",
  "objective",
  "signals",
  "outcomeOf",
];
/** What a call may say of a request. */
const ASK = ["priority", "weight"];

const REASON_BYTES = 1024;
const { check } = abi;
const NO_OPTIONS = Object.freeze({});
/** Between two looks whether a gate is empty, in milliseconds: what others than this thread do is not told. */
const LOOK_MS = 20;

/** Where the library writes a permit's number. One is enough: nothing else runs between writing and reading it. */
const cell = new BigUint64Array(1);

/** The admission controller of one protected resource. It never waits. */
class Gate {
  #handle;
  #outcomeOf;
  #name;

  /** See index.d.ts. */
  constructor(name, limit, options = NO_OPTIONS) {
    if (name instanceof Handle) {
      this.#handle = name;
      this.#outcomeOf = outcomeOf;
      return;
    }
    args.known(options, OPTIONS);
    this.#outcomeOf = outcomes(options.outcomeOf);
    const controller = limits.controller(options.controller);
    const signals = pressures.signals(options.signals);
    const { data, length } = args.utf8(name, "name");
    const config = {
      struct_size: abi.sizes.config,
      default_priority: options.defaultPriority === undefined ? 1 : words.levelOf(options.defaultPriority),
      limit: limits.limit(limit, controller.kind !== 0),
      thresholds: args.thresholds(options.thresholds),
      enforce: args.flag(options.enforce ?? true, "enforce"),
      timing: args.flag(options.timing ?? false, "timing"),
      bare_entries: false,
      reserved: [0, 0, 0, 0, 0],
      rate: args.rate(options.rate, options.burst),
      controller,
      objective: args.objective(options.objective),
      signals: signals.length === 0 ? null : signals,
      signal_count: signals.length,
    };
    const made = [null];
    const why = Buffer.alloc(REASON_BYTES);
    const status = abi.gateNew(config, data, length, made, why, why.length);
    if (status !== 0) throw errorOf(status, cString(why), abi.statusText(status));
    this.#handle = new Handle(made[0]);
  }

  get name() {
    this.#name ??= abi.gateName(this.#handle.pointer);
    return this.#name;
  }

  get limit() {
    return Number(abi.limit(this.#handle.pointer));
  }

  get inFlight() {
    return Number(abi.inFlight(this.#handle.pointer));
  }

  /** A permit, or null where the request is shed. */
  tryAdmit(options = NO_OPTIONS) {
    const { level, weight } = ask(options);
    const status = this.#take(level, weight);
    return status === 0 ? new Permit(this.#handle, cell[0]) : null;
  }

  /** A permit. Throws a Shed where there is none. */
  admit(options = NO_OPTIONS) {
    const { level, weight } = ask(options);
    const status = this.#take(level, weight);
    if (status !== 0) throw this.#shed(status, level, weight);
    return new Permit(this.#handle, cell[0]);
  }

  /** Does the work with a permit, which is given back when the work has ended. Rejects with a Shed where there is none. */
  async run(work, options = NO_OPTIONS) {
    const token = this.#enter(work, options);
    let outcome = "ignore";
    try {
      const result = await work();
      outcome = "success";
      return result;
    } catch (error) {
      outcome = this.outcomeOf(error);
      throw error;
    } finally {
      this.#handle.release(token, words.numberOfOutcome(outcome));
    }
  }

  /** The same for work that is done when it returns. */
  runSync(work, options = NO_OPTIONS) {
    const token = this.#enter(work, options);
    let outcome = "ignore";
    try {
      const result = work();
      if (typeof result?.then === "function") {
        throw new TypeError("the work of runSync returned a promise: it would go on without a permit; use run");
      }
      outcome = "success";
      return result;
    } catch (error) {
      outcome = this.outcomeOf(error);
      throw error;
    } finally {
      this.#handle.release(token, words.numberOfOutcome(outcome));
    }
  }

  /** What an error says of the resource: `success`, `overload` or `ignore`. Never throws. */
  outcomeOf(error) {
    try {
      const own = this.#outcomeOf(error);
      return words.OUTCOMES.includes(own) ? own : outcomeOf(error);
    } catch {
      return outcomeOf(error);
    }
  }

  setLimit(limit, { cause } = NO_OPTIONS) {
    const text = cause === undefined ? null : args.withoutNul(cause, "cause");
    const status = abi.setLimitCause(this.#handle.pointer, args.whole(limit, "limit"), text);
    check(status, () => limits.limitRule(limit, this.controller ?? undefined));
  }

  /** What moves the limit, and where that is; null where nothing does. */
  get controller() {
    return limits.controllerReport(this.#handle.pointer);
  }

  /** The last 64 changes of the limit, the latest last. */
  limitHistory() {
    return limits.limitHistory(this.#handle.pointer);
  }

  setThresholds(thresholds) {
    const status = abi.setThresholdKinds(this.#handle.pointer, args.thresholds(thresholds));
    check(status, () =>
      status === words.ERROR.CONFIG
        ? "thresholds must not rise as importance falls, and the first must be the limit"
        : "a reserve must be a whole number from 0 to 2147483647",
    );
  }

  setRate(rate, { burst } = NO_OPTIONS) {
    const status = abi.setRate(this.#handle.pointer, args.rate(rate, burst));
    check(status, () => `a rate's count must be from 0 to 10000000000, got ${words.shown(rate)}`);
  }

  get rate() {
    const rate = {};
    check(abi.getRate(this.#handle.pointer, rate), () => "rate");
    return rateOf(rate);
  }

  setEnforce(enforce) {
    check(abi.setEnforce(this.#handle.pointer, args.flag(enforce, "enforce")), () => "enforce");
  }

  /** Pushes a value into one of the gate's signals, good for so many seconds. */
  signal(name, value, { goodFor = 5 } = NO_OPTIONS) {
    pressures.push(this.#handle.pointer, name, value, goodFor);
  }

  /** What the gate's signals come to; null where there are none. */
  pressure() {
    return pressures.pressure(this.#handle.pointer);
  }

  /** Seconds to stay away, for a request like this; null: unknown; Infinity: no retry can succeed. */
  retryAfter(options = NO_OPTIONS) {
    const { level, weight } = ask(options);
    return this.#retryAfter(level, weight);
  }

  /** For how long (in seconds) a share `q` of this priority's permits were held at most; null: not measured. */
  latency(q, priority) {
    const seconds = [0];
    const level = words.levelOf(priority ?? null);
    const status = abi.latency(this.#handle.pointer, level, q, seconds);
    check(
      status,
      () => `q must be from 0 to 1 and a priority named, got ${words.shown(q)} and ${words.shown(priority)}`,
    );
    return seconds[0] < 0 ? null : seconds[0];
  }

  stats() {
    const read = { struct_size: abi.sizes.stats };
    check(abi.getStats(this.#handle.pointer, read), () => "stats");
    return statsOf(read);
  }

  close() {
    check(abi.close(this.#handle.pointer), () => "close");
  }

  /** Closes the gate and waits until everything inside has left: true; or false after `timeout` seconds. */
  async drain({ timeout = Number.POSITIVE_INFINITY } = NO_OPTIONS) {
    args.seconds(timeout, "timeout");
    const handle = this.#handle;
    const isEmpty = () => abi.drain(handle.pointer, 0) === 0;
    const deadline = performance.now() + timeout * 1000;
    if (isEmpty()) return true;
    return new Promise((resolve) => {
      const end = (empty) => {
        clearInterval(timer);
        handle.drains.delete(look);
        resolve(empty);
      };
      const look = () => {
        if (isEmpty()) end(true);
        else if (performance.now() >= deadline) end(false);
      };
      const timer = setInterval(look, LOOK_MS);
      handle.drains.add(look);
    });
  }

  #take(level, weight) {
    const status = abi.tryAdmit(this.#handle.pointer, level, weight, cell);
    if (status < 0) {
      const rule = `weight must be a whole number from 1 to 2147483647, got ${words.shown(weight)}`;
      throw errorOf(status, status === words.ERROR.ARGUMENT ? rule : "admission", abi.statusText(status));
    }
    return status;
  }

  #enter(work, options) {
    if (typeof work !== "function") throw new TypeError(`work must be a function, got ${words.shown(work)}`);
    const { level, weight } = ask(options);
    const status = this.#take(level, weight);
    if (status !== 0) throw this.#shed(status, level, weight);
    return cell[0];
  }

  #retryAfter(level, weight) {
    const seconds = [0];
    const status = abi.retryAfter(this.#handle.pointer, level, weight, seconds);
    check(status, () => `weight must be a whole number from 1 to 2147483647, got ${words.shown(weight)}`);
    return seconds[0] < 0 ? null : seconds[0];
  }

  /** Without a stack, which costs more than all else: who is turned away knows from where. */
  #shed(status, level, weight) {
    const { stackTraceLimit } = Error;
    const handle = this.#handle;
    Error.stackTraceLimit = 0;
    try {
      return new Shed(
        {
          gate: this.name,
          reason: words.REASONS[status - 1],
          priority: words.PRIORITIES[level] ?? this.stats().defaultPriority,
          inFlight: Number(abi.inFlight(handle.pointer)),
          limit: Number(abi.limit(handle.pointer)),
          rate: status === RATE ? rateText(this.rate) : null,
        },
        () => this.#retryAfter(level, weight),
      );
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }
}

const RATE = words.REASONS.indexOf("rate") + 1;

/** The priority's number and the weight of a request. */
function ask(options) {
  if (options === NO_OPTIONS) return { level: words.levelOf(currentPriority()), weight: 1 };
  args.known(options, ASK);
  const { priority = currentPriority(), weight = 1 } = options;
  return { level: words.levelOf(priority), weight: args.whole(weight, "weight") };
}

function outcomes(own) {
  if (own === undefined) return outcomeOf;
  if (typeof own !== "function") throw new TypeError(`outcomeOf must be a function, got ${words.shown(own)}`);
  return own;
}

function rateOf({ count, burst, per }) {
  if (per === 0) return null;
  const unit = Object.keys(words.SECONDS_OF_UNIT).find((name) => words.SECONDS_OF_UNIT[name] === per);
  return { count: Number(count), unit, burst: Number(burst) };
}

function rateText(rate) {
  return rate && `${rate.count}/${rate.unit} (burst ${rate.burst})`;
}

/** The text in a buffer that ends with NUL. */
function cString(buffer) {
  const end = buffer.indexOf(0);
  return buffer.toString("utf8", 0, end < 0 ? buffer.length : end);
}

module.exports = { Gate, cString };

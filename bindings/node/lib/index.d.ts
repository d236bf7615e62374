// Times are seconds. The same words as in every language: see docs/ of the project.

/// <reference types="node" />

/** Shed last: critical_plus; first: sheddable. `essential` is critical, `non-essential` sheddable. */
export type Priority = "critical_plus" | "critical" | "sheddable_plus" | "sheddable";
export type PriorityLike = Priority | "essential" | "non-essential";

/** What a permit's work came to: the resource answered; it was too busy; or nothing that would tell. */
export type Outcome = "success" | "overload" | "ignore";

/** Why a request was turned away. */
export type Reason = "limit" | "priority" | "rate" | "pressure" | "closed" | "timeout" | "share";

/** How full a gate may be for a priority still to enter: a share of the limit, or a weight kept free. */
export type Threshold = number | { readonly reserve: number };
export type Thresholds = { readonly [priority in PriorityLike]?: Threshold };

/** A whole number; a bigint where one is at hand. */
export type Whole = number | bigint;

/** What a request asks for. */
export interface Ask {
  /** The gate's default, or that of `usePriority`, unless given. */
  readonly priority?: PriorityLike | undefined;
  /** How much of the limit it takes, 1 to 2147483647. Default 1. */
  readonly weight?: Whole;
}

/** What moves a limit; docs/choosing.md says which when. */
export type ControllerKind = "fixed" | "aimd" | "gradient2" | "vegas" | "goodput";

/** A controller, and within which bounds it moves the limit. */
export interface Controller {
  readonly kind: ControllerKind;
  /** The smallest limit, 1 to `max`. Default 1. */
  readonly min?: Whole;
  /** The largest, 1 to 2147483647. Default 1000, or `min` if that is more. */
  readonly max?: Whole;
  /** A limit that a capacity test has shown to hold, at least `min`: nothing goes above it. Default none. */
  readonly ceiling?: Whole;
  /** The limit to start from. Default the gate's own, and without one the geometric mean of `min` and `max`. */
  readonly prior?: Whole;
}

/** What a signal measures; `pushed` is what `Gate.signal` pushes. */
export type SignalKind = "cpu" | "memory" | "psi-cpu" | "psi-memory" | "psi-io" | "latency" | "errors" | "pushed";

/** A signal to watch, and what its readings mean; the defaults are the kind's: docs/signals.md. */
export interface Signal {
  readonly kind: SignalKind;
  /** A label of 1 to 255 bytes without control characters, one of its own. Default the kind's name. */
  readonly name?: string;
  /** Overloaded at this pressure or above, 0 to 1. */
  readonly enter?: number;
  /** Not overloaded any more at this pressure or below; below `enter`. */
  readonly leave?: number;
  /** The pressure at which all is shed that can be; `enter` or above. */
  readonly full?: number;
  /** For how many seconds it must stay at `enter` or above. */
  readonly enterFor?: number;
  /** For how many seconds it must stay at `leave` or below. */
  readonly leaveFor?: number;
  /** How many seconds it rests after a change. */
  readonly dwell?: number;
  /** In how many seconds what it sheds may rise from nothing to all. */
  readonly ramp?: number;
}

/** What can be said when a gate is made. */
export interface GateOptions {
  /** Default 1, 1, 0.9 and 0.75 of the limit. They must not rise as importance falls. */
  readonly thresholds?: Thresholds;
  /** How much may be admitted a time: `COUNT/s`, `COUNT/min` or `COUNT/h`. Default: any. */
  readonly rate?: string | null;
  /** The most weight that may enter at once. Default: what one second brings, at least 1. */
  readonly burst?: Whole;
  /** The priority of requests that name none. Default `critical`. */
  readonly defaultPriority?: PriorityLike;
  /** False: dry run. Everything is let in, and what would have been shed is counted. Default true. */
  readonly enforce?: boolean;
  /** Whether to measure how long permits are held. Default false. */
  readonly timing?: boolean;
  /** What moves the limit. Default nothing. */
  readonly controller?: Controller | null;
  /** The seconds within which an answer is good, for the controller and for latency. Default: every success is. */
  readonly objective?: number | null;
  /** What else to watch. Default nothing. */
  readonly signals?: readonly Signal[] | null;
  /** What an error of `run` says of the resource. What it leaves undefined, the default decides: see `outcomeOf`. */
  readonly outcomeOf?: (error: unknown) => Outcome | undefined;
}

/** A rate: `count` a `unit`, and the most weight that may enter at once. */
export interface Rate {
  readonly count: number;
  readonly unit: "s" | "min" | "h";
  readonly burst: number;
}

type PerPriority<T> = { readonly [priority in Priority]: T };

/** A reading of a gate's counters. Each only grows; at rest all of it is exact. */
export interface Stats {
  readonly limit: number;
  readonly inFlight: number;
  readonly highWater: number;
  readonly thresholds: PerPriority<number>;
  readonly defaultPriority: Priority;
  readonly enforce: boolean;
  readonly closed: boolean;
  readonly timing: boolean;
  readonly admitted: PerPriority<number>;
  readonly shed: PerPriority<{ readonly [reason in Reason]: number }>;
  readonly wouldShed: PerPriority<number>;
  readonly released: { readonly [outcome in Outcome]: number };
  readonly unmatchedExits: number;
  /** Permits that were forgotten, and given back by the garbage collector. */
  readonly collected: number;
  readonly fallbackPriority: number;
  readonly overInFlight: number;
  /** With timing, the time integral of the weight in flight, in weight-seconds. */
  readonly occupancySeconds: number;
  readonly generation: number;
}

/** What a gate's controller is at. */
export interface ControllerReport {
  readonly kind: ControllerKind;
  readonly min: number;
  /** The ceiling included. */
  readonly max: number;
  /** Where it started. */
  readonly prior: number;
  /** Why the limit is what it is. */
  readonly cause: "hold" | "probe" | "raise" | "lower" | "lost";
  readonly objective: number | null;
  /** How often it looked, how often it moved the limit on evidence, and how often for an experiment, there and back. */
  readonly looks: number;
  readonly moves: number;
  readonly probes: number;
  /** What it looked at last. */
  readonly window: Window;
}

/** What a controller looks at. */
export interface Window {
  /** How many seconds it was. */
  readonly elapsed: number;
  /** The permits that came back with `success` or `overload`; of these the good ones, and those with `overload`. */
  readonly completions: number;
  readonly good: number;
  readonly overload: number;
  readonly admissions: number;
  /** Requests that met a full gate. */
  readonly refusals: number;
}

/** One change of a gate's limit, `age` seconds ago. */
export interface LimitChange {
  readonly from: number;
  readonly to: number;
  readonly age: number;
  /** Up to 63 bytes of what whoever changed it said; of a controller `raise`, `lower` or `lost`. */
  readonly cause: string | null;
}

/** What a gate's signals come to. */
export interface Pressure {
  /** That of the worst signal, 0 to 1. */
  readonly level: number;
  /** Which share of each priority it sheds, 0 to 1. */
  readonly shares: PerPriority<number>;
  /** Whether any signal is. */
  readonly overloaded: boolean;
  /** How often one became overloaded, or no longer was. */
  readonly transitions: number;
  /** In the order in which they were given. */
  readonly signals: readonly SignalReport[];
}

/** What one signal says. */
export interface SignalReport {
  readonly name: string;
  /** What it said when it was last looked at, 0 to 1; null: unknown. */
  readonly value: number | null;
  readonly overloaded: boolean;
  /** Its own pressure level, 0 to 1. */
  readonly level: number;
  readonly enter: number;
  readonly leave: number;
  readonly full: number;
  /** How often it was measured, or a value pushed; and how often it did not know. */
  readonly reads: number;
  readonly failures: number;
  /** How many seconds the last measurement took. */
  readonly cost: number;
}

/** The right to use the resource once. */
export class Permit {
  private constructor();
  /** What it was admitted with. Of a released permit undefined, unless it was read before. */
  readonly priority: Priority | undefined;
  readonly weight: number | undefined;
  /** Whether dry run let it in although enforcement would have shed it. */
  readonly over: boolean | undefined;
  readonly released: boolean;
  /**
   * Gives it back; false, without effect, where that was done before.
   * @throws RangeError for what is no outcome; then it is not given back.
   */
  release(outcome?: Outcome): boolean;
  [Symbol.dispose](): void;
}

/** The admission controller of one protected resource. It never waits. */
export class Gate {
  /**
   * @param name A label of 1 to 255 bytes without control characters.
   * @param limit The most weight that may be in flight, 0 to 2147483647. With a controller where that starts; null
   *   leaves it to the controller.
   * @throws RangeError, TypeError or ConfigError, naming the value and the rule.
   */
  constructor(name: string, limit: Whole, options?: GateOptions);
  constructor(
    name: string,
    limit: Whole | null | undefined,
    options: GateOptions & { readonly controller: Controller },
  );
  readonly name: string;
  readonly limit: number;
  readonly inFlight: number;
  readonly rate: Rate | null;
  /** What moves the limit, and where that is; null where nothing does. */
  readonly controller: ControllerReport | null;
  /** A permit, or null where the request is shed. */
  tryAdmit(ask?: Ask): Permit | null;
  /**
   * A permit.
   * @throws Shed
   */
  admit(ask?: Ask): Permit;
  /**
   * Does the work with a permit, which is given back when the work has ended. Its result is the work's.
   * Rejects with a Shed, without calling it, where there is no permit. Work that never settles keeps its permit for
   * ever, also where nobody waits for it any more: give it a timeout.
   */
  run<T>(work: () => T | PromiseLike<T>, ask?: Ask): Promise<Awaited<T>>;
  /**
   * The same for work that is done when it returns.
   * @throws Shed
   */
  runSync<T>(work: () => T, ask?: Ask): T;
  /** What an error says of the resource. Never throws. */
  outcomeOf(error: unknown): Outcome;
  /**
   * Sets the limit; nothing is admitted above it once this has returned. `cause` is for the gate's history. A
   * controller starts anew from it, and takes none outside its bounds.
   */
  setLimit(limit: Whole, options?: { readonly cause?: string }): void;
  /** Sets the thresholds of all priorities; those that are not named get their defaults. */
  setThresholds(thresholds: Thresholds): void;
  /** Sets the rate, or takes it away (null). */
  setRate(rate: string | null, options?: { readonly burst?: Whole }): void;
  /** Switches dry run off (true) or on (false). */
  setEnforce(enforce: boolean): void;
  /**
   * Pushes a value from 0 to 1 into a signal of kind `pushed`; whoever asks for a permit next has it looked at. After
   * `goodFor` seconds (5; rounded up to milliseconds) it is unknown, which is never overload.
   */
  signal(name: string, value: number, options?: { readonly goodFor?: number }): void;
  /** What the gate's signals come to, null where there are none. Where it is time to look at them, this does. */
  pressure(): Pressure | null;
  /** The last 64 changes of the limit, the latest last. A controller's experiments are not among them. */
  limitHistory(): LimitChange[];
  /** Seconds to stay away, for a request like this; null: unknown; Infinity: no retry can succeed. */
  retryAfter(ask?: Ask): number | null;
  /** For how many seconds a share `q` (0 to 1) of a priority's permits were held at most; null: not measured. */
  latency(q: number, priority: PriorityLike): number | null;
  stats(): Stats;
  /** Admits nothing any more. What is inside may leave in its own time. */
  close(): void;
  /** Closes the gate and waits until everything inside has left: true; false after `timeout` seconds. */
  drain(options?: { readonly timeout?: number }): Promise<boolean>;
}

/** What is known of a request, for the classifier: a missing attribute is undefined or null. */
export interface Attributes {
  readonly [name: string]: string | null | undefined;
}

/** The gates of a configuration file, by name, and its classifier. */
export class Gates {
  private constructor();
  /** @throws ConfigError with everything that is wrong with the file, one problem a line. */
  static open(path: string): Gates;
  /** @throws ConfigError as `open`. */
  static parse(text: string, options?: { readonly file?: string }): Gates;
  /** @throws RangeError where the file has no such gate. */
  get(name: string): Gate;
  names(): string[];
  /**
   * Reads the file again and makes its gates what it says now: what was changed, in words.
   * @throws ConfigError; then nothing was changed.
   */
  reload(): string[];
  reloadText(text: string): string[];
  /** What the gates and rules do, in words. */
  explain(): string;
  /** A request's priority; undefined where the rules leave it open: fit for `Ask.priority` either way. */
  classify(attributes: Attributes): Priority | undefined;
  /** The same, and a sentence with the rule that decided. */
  classifyWithReason(attributes: Attributes): { priority: Priority | undefined; why: string };
}

/** The base of what this package throws of its own accord. */
export class TidegateError extends Error {}
/** A configuration that breaks a rule; nothing was changed. */
export class ConfigError extends TidegateError {}
/** The native library is missing, or of another version. */
export class LibraryError extends Error {}

/** The request was turned away: try again later. An outcome, not an error; it has no stack. */
export class Shed extends TidegateError {
  private constructor();
  readonly gate: string;
  readonly reason: Reason;
  readonly priority: Priority;
  readonly inFlight: number;
  readonly limit: number;
  /** The gate's rate in words, where that is the reason. */
  readonly rate: string | null;
  /** Seconds to stay away; null: unknown; Infinity: no retry can succeed. */
  readonly retryAfter: number | null;
  /** The value of a Retry-After header: whole seconds, at least 1, jittered upwards. */
  readonly retryAfterHeader: string;
}

/**
 * What an error says of the resource: timeouts are `overload`; what was called off (AbortError) or shed by another
 * gate is `ignore`; any other error is `success`, since the resource answered.
 */
export function outcomeOf(error: unknown): Outcome;

/** Calls `work` with this priority for all gates that are asked inside, also after an await. */
export function usePriority<T>(priority: PriorityLike, work: () => T): T;

/**
 * Has every checkout of a Pool of `pg` pass a gate: `pool.connect()` and `pool.query()`. A permit is taken before a
 * connection, and given back with it.
 */
export function gatePool<P extends { connect: (...given: never[]) => unknown }>(pool: P, gate: Gate, ask?: Ask): P;

/** A value, or how to tell it from a request. */
type From<R, T> = T | ((request: R) => T);

/** What middleware asks for each request. */
export interface EdgeOptions<R> {
  readonly priority?: From<R, PriorityLike | null | undefined>;
  readonly weight?: From<R, Whole | undefined>;
  /** The answer to a shed. Default 503. */
  readonly status?: 503 | 429;
}

/** Express middleware, also for Connect and bare `http` servers. */
export function express<R extends import("node:http").IncomingMessage>(
  gate: Gate,
  options?: EdgeOptions<R>,
): (request: R, response: import("node:http").ServerResponse, next: (error?: unknown) => void) => void;

/** A Fastify plugin: `app.register(fastify, { gate })`. */
export function fastify<R>(
  // biome-ignore lint/suspicious/noExplicitAny: Fastify's own types are not needed to use this package
  instance: any,
  options: EdgeOptions<R> & { readonly gate: Gate },
  done: (error?: Error) => void,
): void;

/** Status, headers and body (a problem document, RFC 9457) of the answer to a shed. */
export function shedResponse(
  shed: Shed,
  options?: { readonly status?: 503 | 429 },
): { status: number; headers: { "Content-Type": string; "Retry-After": string }; body: string };

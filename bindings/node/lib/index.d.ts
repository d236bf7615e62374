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
   * @param limit The most weight that may be in flight, 0 to 2147483647.
   * @throws RangeError, TypeError or ConfigError, naming the value and the rule.
   */
  constructor(name: string, limit: Whole, options?: GateOptions);
  readonly name: string;
  readonly limit: number;
  readonly inFlight: number;
  readonly rate: Rate | null;
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
  /** Sets the limit; nothing is admitted above it once this has returned. `cause` is for the gate's history. */
  setLimit(limit: Whole, options?: { readonly cause?: string }): void;
  /** Sets the thresholds of all priorities; those that are not named get their defaults. */
  setThresholds(thresholds: Thresholds): void;
  /** Sets the rate, or takes it away (null). */
  setRate(rate: string | null, options?: { readonly burst?: Whole }): void;
  /** Switches dry run off (true) or on (false). */
  setEnforce(enforce: boolean): void;
  /**
   * Pushes a value from 0 to 1 into a signal of kind "pushed", which a configuration file gives to the gate; after
   * `goodFor` seconds (5) it is unknown, which is never overload.
   */
  signal(name: string, value: number, options?: { readonly goodFor?: number }): void;
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

// What callers pass, made into what the C ABI takes. Nothing is ever cut to size: a number that is no whole number is
// refused here, one that is out of its range by the library.

const { PRIORITIES, SECONDS_OF_UNIT, THRESHOLD, levelOf, shown } = require("./words.js");

const PPM = 1_000_000;
const MAX_WEIGHT = 2 ** 31 - 1;

/** A whole number that an int64_t holds. */
function whole(value, name) {
  if (typeof value === "number" ? Number.isSafeInteger(value) : isInt64(value)) return value;
  throw new RangeError(`${name} must be a whole number, got ${shown(value)}`);
}

function isInt64(value) {
  return typeof value === "bigint" && BigInt.asIntN(64, value) === value;
}

/**
 * UTF-8 of a text: its `data` and the `length` that counts. JavaScript's strings can hold halves of characters, which
 * have none. The data is never empty, since of an empty buffer C gets NULL.
 */
function utf8(text, name) {
  if (typeof text !== "string") throw new TypeError(`${name} must be a string, got ${shown(text)}`);
  if (!text.isWellFormed()) throw new RangeError(`${name} must be well-formed Unicode, got ${shown(text)}`);
  return ended(text);
}

function ended(text) {
  const data = Buffer.from(`${text}\0`);
  return { data, length: data.length - 1 };
}

/** A text that ends with a NUL in C, and so cannot hold one. */
function withoutNul(text, name) {
  utf8(text, name);
  if (text.includes("\0")) throw new RangeError(`${name} must not contain NUL, got ${shown(text)}`);
  return text;
}

/** A whole number from 1 that an int32_t holds. */
function counting(value, name) {
  const number = whole(value, name);
  if (number < 1 || number > MAX_WEIGHT) {
    throw new RangeError(`${name} must be a whole number from 1 to ${MAX_WEIGHT}, got ${shown(value)}`);
  }
  return number;
}

/** A share of the whole. */
function share(value, name) {
  if (typeof value === "number" && value >= 0 && value <= 1) return value;
  throw new RangeError(`${name} must be a number from 0 to 1, got ${shown(value)}`);
}

/** A time in seconds. */
function seconds(value, name) {
  if (typeof value === "number" && value >= 0) return value;
  throw new RangeError(`${name} must be a number of seconds from 0, got ${shown(value)}`);
}

/** A time in seconds as whole milliseconds, rounded up; but what is off by less than a microsecond is not off. */
function milliseconds(value, name) {
  const number = Math.ceil(Math.round(seconds(value, name) * 1e6) / 1e3);
  if (Number.isSafeInteger(number)) return number;
  throw new RangeError(`${name} must be a time that can end, got ${shown(value)}`);
}

/** The number of a word, from 1. */
function oneOf(words, word, name) {
  if (words.includes(word)) return words.indexOf(word) + 1;
  throw new RangeError(`${name} must be one of ${words.join(", ")}, got ${shown(word)}`);
}

/** A name that nobody knows is a slip of the pen, not to be passed over. */
function known(options, names) {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`options must be an object, got ${shown(options)}`);
  }
  for (const name in options) {
    if (!names.includes(name)) throw new TypeError(`unknown option ${name}; there are ${names.join(", ")}`);
  }
}

function flag(value, name) {
  if (typeof value !== "boolean") throw new TypeError(`${name} must be true or false, got ${shown(value)}`);
  return value;
}

/** The four thresholds; those that are not named have their defaults. */
function thresholds(byPriority) {
  const four = PRIORITIES.map(() => ({ kind: THRESHOLD.DEFAULT, value: 0 }));
  for (const [priority, value] of Object.entries(byPriority ?? {})) four[levelOf(priority)] = threshold(value);
  return four;
}

function threshold(value) {
  if (typeof value === "object" && value !== null) {
    return { kind: THRESHOLD.RESERVE, value: whole(value.reserve, "a reserve") };
  }
  if (typeof value !== "number" || !(value >= 0 && value <= 1)) {
    throw new RangeError(`a threshold must be a fraction of the limit from 0 to 1, got ${shown(value)}`);
  }
  return { kind: THRESHOLD.PPM, value: Math.round(value * PPM) };
}

/** A rate from "150/min"; null is none. */
function rate(text, burst) {
  if (text === undefined || text === null) {
    if (burst !== undefined) throw new RangeError(`burst needs a rate, got ${shown(burst)} without one`);
    return { count: 0, burst: 0, per: 0, reserved: 0 };
  }
  const [, count, unit] = (typeof text === "string" && /^(\d+)\/(s|min|h)$/.exec(text)) || [];
  if (count === undefined || !isInt64(BigInt(count))) {
    throw new RangeError(`rate must be COUNT/UNIT with a whole COUNT and the UNIT s, min or h, got ${shown(text)}`);
  }
  return { count: BigInt(count), burst: burstOf(burst), per: SECONDS_OF_UNIT[unit], reserved: 0 };
}

/** Unless it is said it has its default, in C. */
const burstOf = (burst) => (burst === undefined ? 0 : counting(burst, "burst"));

/** The time within which an answer is good; null is none. */
function objective(value) {
  if (value === undefined || value === null) return 0;
  if (seconds(value, "objective") > 0) return value;
  throw new RangeError(`objective must be longer than zero, got ${shown(value)}`);
}

module.exports = {
  MAX_WEIGHT,
  counting,
  ended,
  flag,
  known,
  milliseconds,
  objective,
  oneOf,
  rate,
  seconds,
  share,
  thresholds,
  utf8,
  whole,
  withoutNul,
};

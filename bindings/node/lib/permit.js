const abi = require("./abi.js");
const { forgotten } = require("./handle.js");
const { TidegateError } = require("./errors.js");
const { PRIORITIES, numberOfOutcome } = require("./words.js");

/** The right to use the resource once. Release it exactly once; a second time does nothing. */
class Permit {
  #handle;
  #token;
  #released = false;
  #facts;

  constructor(handle, token) {
    this.#handle = handle;
    this.#token = token;
    forgotten.register(this, { handle, token }, this);
  }

  get released() {
    return this.#released;
  }

  // What it was admitted with is asked for when it is wanted, which for most permits is never. Of a released permit it
  // is known if it was asked for before.

  get priority() {
    return this.#read()?.priority;
  }

  get weight() {
    return this.#read()?.weight;
  }

  get over() {
    return this.#read()?.over;
  }

  /** Gives the permit back; false, without effect, where that was done before. */
  release(outcome = "success") {
    const number = numberOfOutcome(outcome);
    if (this.#released) return false;
    this.#released = true;
    forgotten.unregister(this);
    return this.#handle.release(this.#token, number);
  }

  [Symbol.dispose]() {
    this.release();
  }

  #read() {
    if (this.#facts === undefined && !this.#released) {
      const read = { struct_size: abi.sizes.permit };
      const status = abi.getPermit(this.#handle.pointer, this.#token, read);
      if (status !== 0) throw new TidegateError(abi.statusText(status));
      this.#facts = { priority: PRIORITIES[read.priority], weight: Number(read.weight), over: read.over };
    }
    return this.#facts;
  }
}

module.exports = { Permit };

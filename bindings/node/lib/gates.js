const abi = require("./abi.js");
const args = require("./arguments.js");
const { errorOf } = require("./errors.js");
const { Gate, cString } = require("./gate.js");
const { Handle } = require("./handle.js");
const { DEFAULT_PRIORITY, PRIORITIES, shown } = require("./words.js");

const TEXT_BYTES = 1 << 16;
const WHY_BYTES = 4096;

/** The native gates of a file, as long as these Gates or one of their gates is in use. */
class Owner {
  constructor(pointer) {
    this.pointer = pointer;
    freed.register(this, pointer);
  }
}
const freed = new FinalizationRegistry(abi.gatesFree);

/** The gates of a configuration file, by name, and its classifier. */
class Gates {
  #owner;
  #gates = new Map();

  constructor(owner) {
    if (!(owner instanceof Owner)) throw new TypeError("make Gates with Gates.open or Gates.parse");
    this.#owner = owner;
  }

  /** Reads a file. */
  static open(path) {
    args.withoutNul(path, "path");
    return made((to, why) => abi.open(path, to, why, why.length));
  }

  /** Reads a text, which messages call `file`. */
  static parse(text, { file = "<text>" } = {}) {
    const { data, length } = args.utf8(text, "text");
    args.withoutNul(file, "file");
    return made((to, why) => abi.openText(data, length, file, to, why, why.length));
  }

  /** The gate of a name, the same object at every call. Throws where the file has none. */
  get(name) {
    const { data, length } = args.utf8(name, "name");
    const found = [null];
    const status = abi.find(this.#owner.pointer, data, length, found);
    if (status !== 0) throw errorOf(status, `the file has no gate ${shown(name)}`, abi.statusText(status));
    return this.#gate(name, found[0]);
  }

  /** The names of the gates that the file has, in its order. */
  names() {
    const names = [];
    for (const at = [null]; abi.gateAt(this.#owner.pointer, names.length, at) === 0; ) {
      names.push(abi.gateName(at[0]));
    }
    return names;
  }

  /** Reads the file again and makes its gates what it says now: what was changed, in words. */
  reload() {
    return changed((to) => abi.reload(this.#owner.pointer, to, to.length));
  }

  /** The same from a text. */
  reloadText(text) {
    const { data, length } = args.utf8(text, "text");
    return changed((to) => abi.reloadText(this.#owner.pointer, data, length, to, to.length));
  }

  /** What the gates and rules do, in words. */
  explain() {
    const length = [0];
    abi.explain(this.#owner.pointer, null, 0, length);
    // A reload in another thread may have made it longer meanwhile: then it is cut.
    const text = Buffer.alloc(Number(length[0]) + 1);
    abi.explain(this.#owner.pointer, text, text.length, length);
    return cString(text);
  }

  /** The priority of a request by the rules that the file has now; undefined where they leave it open. */
  classify(attributes) {
    return this.#classify(attributes, null).priority;
  }

  /** The same, and a sentence with the rule that decided. */
  classifyWithReason(attributes) {
    return this.#classify(attributes, Buffer.alloc(WHY_BYTES));
  }

  #classify(attributes, why) {
    const given = Object.entries(attributes).map(([name, value]) => attribute(name, value));
    const level = [0];
    const status = abi.classify(this.#owner.pointer, given, given.length, level, why, why?.length ?? 0);
    if (status !== 0) {
      throw errorOf(status, `a request has at most 4096 attributes, got ${given.length}`, abi.statusText(status));
    }
    const priority = level[0] === DEFAULT_PRIORITY ? undefined : PRIORITIES[level[0]];
    return { priority, why: why === null ? undefined : cString(why) };
  }

  #gate(name, pointer) {
    if (!this.#gates.has(name)) this.#gates.set(name, new Gate(new Handle(pointer, this.#owner)));
    return this.#gates.get(name);
  }
}

function made(open) {
  const to = [null];
  const why = Buffer.alloc(TEXT_BYTES);
  const status = open(to, why);
  if (status !== 0) throw errorOf(status, cString(why), abi.statusText(status));
  return new Gates(new Owner(to[0]));
}

function changed(reload) {
  const report = Buffer.alloc(TEXT_BYTES);
  const status = reload(report);
  const text = cString(report);
  if (status !== 0) throw errorOf(status, text, abi.statusText(status));
  return text.split("\n").filter((line) => line !== "");
}

/** What a client sent need not be well-formed: its halves of characters become the replacement character. */
function attribute(name, value) {
  const { data = null, length = 0 } = value === undefined || value === null ? {} : args.ended(String(value));
  return { name: args.withoutNul(name, "an attribute's name"), value: data, value_len: length };
}

module.exports = { Gates };

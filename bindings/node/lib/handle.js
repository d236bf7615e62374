// A native gate as long as anything here needs it: the Gate, a permit that is out, a permit that was forgotten.

const abi = require("./abi.js");

const freed = new FinalizationRegistry(abi.gateFree);

class Handle {
  /** @param owner What the gate belongs to and dies with; without one it is this handle's own. */
  constructor(pointer, owner) {
    this.pointer = pointer;
    this.owner = owner;
    this.drains = new Set();
    if (owner === undefined) freed.register(this, pointer);
  }

  /** Gives a permit back; false where it is not out any more. */
  release(token, outcome) {
    const status = abi.release(this.pointer, token, outcome);
    for (const look of this.drains) look();
    return status === 0;
  }
}

/** A permit that nobody holds any more was forgotten: it is given back, and that is counted. */
const forgotten = new FinalizationRegistry(({ handle, token }) => {
  abi.releaseCollected(handle.pointer, token);
  for (const look of handle.drains) look();
});

module.exports = { Handle, forgotten };

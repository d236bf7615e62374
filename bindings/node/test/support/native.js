// What only tests may do, with the library that has the test hooks: see tests/c/tidegate_test.h.

const { hook } = require("../../lib/abi.js");

const setClock = hook("void tidegate_test_set_clock(uint64_t now_ns)");

module.exports = {
  /** Sets the time, and has gates that are made from now on go by it. */
  setClock: (ns) => setClock(BigInt(ns)),
  panicNext: hook("void tidegate_test_panic_next()"),
  fullNext: hook("void tidegate_test_full_next()"),
};

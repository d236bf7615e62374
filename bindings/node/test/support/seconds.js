const { setClock } = require("./native.js");

const SECOND = 1_000_000_000;

/** A second in which all of so many are inside together, and come back with the outcome. */
function aSecond(gate, from, inside, outcome) {
  setClock(from * SECOND);
  const permits = Array.from({ length: inside }, () => gate.admit());
  setClock((from + 1) * SECOND);
  for (const permit of permits) permit.release(outcome);
}

module.exports = { SECOND, aSecond };

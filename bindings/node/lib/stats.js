// tidegate_stats, with names for numbers.

const { OUTCOMES, PRIORITIES, REASONS } = require("./words.js");

const named = (names, values) => Object.fromEntries(names.map((name, at) => [name, Number(values[at])]));

function statsOf(read) {
  return Object.freeze({
    limit: read.limit,
    inFlight: read.in_flight,
    highWater: read.high_water,
    thresholds: named(PRIORITIES, read.thresholds),
    defaultPriority: PRIORITIES[read.default_priority],
    enforce: read.enforce,
    closed: read.closed,
    timing: read.timing,
    admitted: named(PRIORITIES, read.admitted),
    shed: Object.fromEntries(PRIORITIES.map((name, level) => [name, named(REASONS, read.shed[level])])),
    wouldShed: named(PRIORITIES, read.would_shed),
    released: named(OUTCOMES, read.released),
    unmatchedExits: Number(read.unmatched_exits),
    collected: Number(read.collected),
    fallbackPriority: Number(read.fallback_priority),
    overInFlight: Number(read.over_in_flight),
    occupancySeconds: Number(read.occupancy_us) / 1e6,
    generation: read.generation,
  });
}

module.exports = { statsOf };

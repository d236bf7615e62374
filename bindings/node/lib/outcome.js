// What an error says of the resource behind the gate.

const { Shed } = require("./errors.js");

/** Timeouts of Node, its sockets and undici. */
const OVERLOAD_CODES = new Set([
  "ETIMEDOUT",
  "ESOCKETTIMEDOUT",
  "ERR_SOCKET_CONNECTION_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

/**
 * `overload`: a timeout. `ignore`: it was called off, or another gate turned it away, and so says nothing. Any other
 * error is `success`: the resource answered. Of an AggregateError `overload` if one of its errors is, `ignore` if
 * all are.
 */
function outcomeOf(error) {
  if (error instanceof AggregateError) return outcomeOfAll(error.errors.map(outcomeOf));
  if (error instanceof Shed || error?.name === "AbortError") return "ignore";
  return error?.name === "TimeoutError" || OVERLOAD_CODES.has(error?.code) ? "overload" : "success";
}

function outcomeOfAll(outcomes) {
  if (outcomes.includes("overload")) return "overload";
  return outcomes.length > 0 && outcomes.every((outcome) => outcome === "ignore") ? "ignore" : "success";
}

module.exports = { outcomeOf };

// The gate in front of a server's handlers, and the answer to a shed.

const { Shed } = require("./errors.js");
const { shown } = require("./words.js");

// Types and titles as registered with IANA.
const PROBLEMS = {
  503: ["temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"],
  429: ["quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"],
};

/**
 * Status, headers and body of an answer, with a Retry-After in whole seconds and a problem document (RFC 9457). The
 * numbers of the gate stay inside: how full a service is, is not for its clients to know.
 */
function shedResponse(shed, { status = 503 } = {}) {
  const [type, title] = PROBLEMS[checked(status)];
  const retryAfter = shed.retryAfterHeader; // jittered anew at each reading: the body repeats this one
  const body = {
    type: `https://iana.org/assignments/http-problem-types#${type}`,
    title,
    status,
    gate: shed.gate,
    reason: shed.reason,
    priority: shed.priority,
    retry_after: Number(retryAfter),
  };
  const headers = { "Content-Type": "application/problem+json", "Retry-After": retryAfter };
  return { status, headers, body: JSON.stringify(body) };
}

function checked(status) {
  if (!Object.hasOwn(PROBLEMS, status)) throw new RangeError(`status must be 503 or 429, got ${shown(status)}`);
  return status;
}

/** By connection: what to do when it is gone, for those of its requests that wait for the answer to another. */
const behindOthers = new WeakMap();

function ofConnection(socket) {
  let leaving = behindOthers.get(socket);
  if (leaving === undefined) {
    leaving = new Set();
    behindOthers.set(socket, leaving);
    socket.once("close", () => {
      for (const leave of leaving) leave();
    });
  }
  return leaving;
}

/** Whether nobody is there any more to answer: while others looked at the request its client may have left. */
function isGone(request, response) {
  return response.destroyed === true || (response.stream ?? request.socket)?.destroyed === true;
}

/**
 * Holds a permit until the response was sent, or its connection is gone. The shed, or undefined.
 *
 * A response that was cut off is `ignore`: its client left.
 */
function hold(gate, ask, request, response) {
  let permit;
  try {
    permit = gate.admit(ask);
  } catch (error) {
    if (error instanceof Shed) return error;
    throw error;
  }
  const { stream } = response; // of HTTP/2
  // A response that waits for another's end has no connection yet, and is not told that there is none any more.
  const waiting = response.socket === null && request.socket ? ofConnection(request.socket) : undefined;
  const leave = () => {
    waiting?.delete(leave);
    const sent = stream === undefined ? response.writableFinished : stream.rstCode === 0;
    permit.release(sent ? "success" : "ignore");
  };
  waiting?.add(leave);
  response.once("close", leave);
  return undefined;
}

/** Express middleware, also for Connect and bare `http` servers: `app.use(express(gate))`. */
function express(gate, { priority, weight, status = 503 } = {}) {
  const askOf = asker(priority, weight);
  checked(status);
  return function tidegate(request, response, next) {
    if (isGone(request, response)) return;
    const shed = hold(gate, askOf(request), request, response);
    if (shed === undefined) return next();
    const answer = shedResponse(shed, { status });
    response.writeHead(answer.status, answer.headers).end(answer.body);
  };
}

/** A Fastify plugin: `app.register(fastify, { gate })`. For all routes of the instance that it is registered on. */
function fastify(instance, { gate, priority, weight, status = 503 }, done) {
  const askOf = asker(priority, weight);
  checked(status);
  instance.addHook("onRequest", (request, reply, next) => {
    if (isGone(request.raw, reply.raw)) return;
    const shed = hold(gate, askOf(request), request.raw, reply.raw);
    if (shed === undefined) return next();
    const answer = shedResponse(shed, { status });
    reply.code(answer.status).headers(answer.headers).send(Buffer.from(answer.body)); // to a string it would add a charset
  });
  done();
}
// For the instance itself, not for a child of it.
fastify[Symbol.for("skip-override")] = true;
fastify[Symbol.for("fastify.display-name")] = "tidegate";

/** What a request asks for. A priority or a weight may depend on it. */
function asker(priority, weight) {
  const of = (value, request) => (typeof value === "function" ? value(request) : value);
  return (request) => {
    const ask = {};
    const itsPriority = of(priority, request);
    const itsWeight = of(weight, request);
    if (itsPriority !== undefined && itsPriority !== null) ask.priority = itsPriority;
    if (itsWeight !== undefined) ask.weight = itsWeight;
    return ask;
  };
}

module.exports = { express, fastify, shedResponse };

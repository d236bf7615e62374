// Real servers of Express, Fastify and Node itself, and real clients.

const assert = require("node:assert/strict");
const http = require("node:http");
const { once } = require("node:events");
const { test } = require("node:test");
const { Gate, express: gated, fastify: plugin, shedResponse } = require("../lib/index.js");

/** A handler that answers when it is told to. */
function holding() {
  const waiting = [];
  let arrived = () => {};
  return {
    handler(_, response) {
      waiting.push(() => response.end("done"));
      arrived();
    },
    async someone() {
      if (waiting.length === 0) await new Promise((resolve) => (arrived = resolve));
    },
    answer: () => waiting.shift()(),
  };
}

const options = { priority: (request) => request.headers["x-priority"], status: 503 };

const servers = {
  express: async (gate, handler) => {
    const app = require("express")();
    app.use(gated(gate, options));
    app.get("/", handler);
    return listen(http.createServer(app));
  },
  fastify: async (gate, handler) => {
    const app = require("fastify")();
    await app.register(plugin, { gate, ...options });
    app.get("/", (request, reply) => {
      reply.hijack();
      handler(request.raw, reply.raw);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return app.server;
  },
  http: async (gate, handler) => {
    const middleware = gated(gate, options);
    return listen(
      http.createServer((request, response) => middleware(request, response, () => handler(request, response))),
    );
  },
};

async function listen(server) {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

/** Ends with the test, whatever is still open. */
function portOf(server, context) {
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address().port;
}

/** What a request is answered. */
function get(port, headers = {}, path = "/") {
  const request = http.get({ port, path, host: "127.0.0.1", headers, agent: false });
  const answered = once(request, "response").then(async ([response]) => {
    let body = "";
    for await (const part of response.setEncoding("utf8")) body += part;
    return { status: response.statusCode, headers: response.headers, body };
  });
  return { request, answered };
}

async function until(holds) {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

for (const [name, serve] of Object.entries(servers)) {
  test(`${name}: one is served, the next is told to come back later`, async (context) => {
    const gate = new Gate("edge", 1);
    const { handler, someone, answer } = holding();
    const port = portOf(await serve(gate, handler), context);
    const first = get(port, { "x-priority": "critical_plus" });
    await someone();
    const shed = await get(port, { "x-priority": "sheddable" }).answered;
    assert.equal(shed.status, 503);
    assert.equal(shed.headers["content-type"], "application/problem+json");
    const problem = JSON.parse(shed.body);
    assert.equal(String(problem.retry_after), shed.headers["retry-after"]);
    const { gate: gateName, reason, priority, status } = problem;
    assert.deepEqual(
      { gateName, reason, priority, status },
      {
        gateName: "edge",
        reason: "limit",
        priority: "sheddable",
        status: 503,
      },
    );
    answer();
    assert.equal((await first.answered).body, "done");
    await until(() => gate.inFlight === 0);
    const { released, admitted } = gate.stats();
    assert.deepEqual(released, { success: 1, overload: 0, ignore: 0 });
    assert.equal(admitted.critical_plus, 1);
  });

  test(`${name}: a client that leaves gives its permit back, and says nothing of the service`, async (context) => {
    const gate = new Gate("edge", 1);
    const { handler, someone } = holding();
    const port = portOf(await serve(gate, handler), context);
    const { request, answered } = get(port);
    answered.catch(() => {});
    await someone();
    request.destroy();
    await until(() => gate.inFlight === 0);
    assert.deepEqual(gate.stats().released, { success: 0, overload: 0, ignore: 1 });
  });
}

test("the answer to a shed is a problem document, with status 503 or 429", async (context) => {
  const gate = new Gate("edge", 0);
  const shed = await gate.run(() => {}, { priority: "sheddable" }).catch((thrown) => thrown);
  const types = {
    503: ["temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"],
    429: ["quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"],
  };
  const answers = [shedResponse(shed), shedResponse(shed, { status: 503 }), shedResponse(shed, { status: 429 })];
  for (const [at, wanted] of [503, 503, 429].entries()) {
    const { status, headers, body } = answers[at];
    const [type, title] = types[wanted];
    const { retry_after: retryAfter, ...problem } = JSON.parse(body);
    assert.deepEqual({ status, type: headers["Content-Type"] }, { status: wanted, type: "application/problem+json" });
    assert.ok(retryAfter >= 60 && headers["Retry-After"] === String(retryAfter));
    assert.deepEqual(problem, {
      ...{ type: `https://iana.org/assignments/http-problem-types#${type}`, title, status: wanted },
      ...{ gate: "edge", reason: "limit", priority: "sheddable" },
    });
  }
  for (const status of [500, 200, "x", null]) assert.throws(() => shedResponse(shed, { status }), RangeError);

  const app = require("express")();
  app.use("/quota", gated(gate, { status: 429 }));
  app.use(gated(gate));
  const port = portOf(await listen(http.createServer(app)), context);
  assert.equal((await get(port).answered).status, 503);
  assert.equal((await get(port, {}, "/quota").answered).status, 429);
  const quick = require("fastify")();
  await quick.register(plugin, { gate, status: 429 });
  context.after(() => quick.close());
  assert.equal((await quick.inject("/")).statusCode, 429);
  const usual = require("fastify")();
  await usual.register(plugin, { gate });
  context.after(() => usual.close());
  assert.equal((await usual.inject("/")).statusCode, 503);
  assert.throws(() => plugin(usual, { gate, status: 500 }, () => {}), RangeError);
});

test("a priority and a weight may be told of each request, or said for all", () => {
  const gate = new Gate("edge", 100);
  const one = (options, request = { weight: undefined }) => {
    const before = gate.inFlight;
    gated(gate, options)(request, { once: () => {} }, () => {});
    return gate.inFlight - before;
  };
  assert.equal(one(undefined), 1);
  assert.equal(one({ weight: 3, priority: "sheddable" }), 3);
  assert.equal(one({ weight: ({ weight }) => weight, priority: () => null }, { weight: 5 }), 5);
  assert.equal(one({ weight: ({ weight }) => weight, priority: () => undefined }), 1);
  assert.deepEqual(gate.stats().admitted, { critical_plus: 0, critical: 3, sheddable_plus: 0, sheddable: 1 });
  assert.throws(() => one({ weight: 0 }), RangeError);
});

test("a status that is no answer to a shed is refused at once", () => {
  assert.throws(() => gated(new Gate("edge", 1), { status: 500 }), /status must be 503 or 429, got 500/);
});

test("a priority that is none ends in the framework's error handler", async (context) => {
  const gate = new Gate("edge", 1);
  const app = require("express")();
  app.use(gated(gate, options));
  app.use((error, _request, response, _next) => response.status(500).end(error.message));
  const port = portOf(await listen(http.createServer(app)), context);
  const { status, body } = await get(port, { "x-priority": "urgent" }).answered;
  assert.equal(status, 500);
  assert.match(body, /priority must be one of/);
  assert.equal(gate.inFlight, 0);
});

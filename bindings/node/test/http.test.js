// Real servers of Express, Fastify and Node itself, and real clients.

const assert = require("node:assert/strict");
const http = require("node:http");
const { once } = require("node:events");
const { test } = require("node:test");
const { Gate, express: gated, fastify: plugin } = require("../lib/index.js");

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
function get(port, headers = {}) {
  const request = http.get({ port, host: "127.0.0.1", headers, agent: false });
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

// Connections that end at odd moments lose no permit.

const assert = require("node:assert/strict");
const { once } = require("node:events");
const http = require("node:http");
const http2 = require("node:http2");
const net = require("node:net");
const { test } = require("node:test");
const { Gate, express, fastify: plugin } = require("../lib/index.js");

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/** A server whose port is known, and which ends with the test. */
async function listening(server, context) {
  context.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server.address().port;
}

async function until(holds) {
  while (!holds()) await new Promise(setImmediate);
}

const released = (gate) => Object.values(gate.stats().released);

test("a client that left before the gate is not let in", { timeout: 30_000 }, async (context) => {
  const gate = new Gate("db", 5);
  const middleware = express(gate);
  let begun = 0;
  const server = http.createServer(async (request, response) => {
    // As what asks who it is, before the gate.
    await once(response, "close");
    middleware(request, response, () => (begun += 1));
    server.emit("asked");
  });
  const client = net.connect(await listening(server, context), "127.0.0.1").on("error", () => {});
  client.write(GET);
  await once(server, "request");
  const asked = once(server, "asked");
  client.destroy();
  await asked;
  assert.deepEqual([gate.inFlight, begun, gate.stats().admitted.critical], [0, 0, 0]);
});

test("a client that left before the gate is not let in by Fastify", { timeout: 30_000 }, async (context) => {
  const gate = new Gate("db", 5);
  const app = require("fastify")();
  let asked = false;
  app.addHook("onRequest", async (_, reply) => {
    await once(reply.raw, "close");
    setImmediate(() => (asked = true));
  });
  await app.register(plugin, { gate });
  app.get("/", async () => assert.fail("the work began"));
  await app.ready();
  const client = net.connect(await listening(app.server, context), "127.0.0.1").on("error", () => {});
  client.write(GET);
  await once(app.server, "request");
  client.destroy();
  await until(() => asked);
  assert.deepEqual([gate.inFlight, gate.stats().admitted.critical], [0, 0]);
});

test("requests behind others on a connection leave with it", { timeout: 30_000 }, async (context) => {
  const gate = new Gate("db", 50);
  const middleware = express(gate);
  const waiting = [];
  const server = http.createServer((request, response) =>
    middleware(request, response, () => waiting.push({ request, response })),
  );
  const client = net.connect(await listening(server, context), "127.0.0.1").on("error", () => {});
  client.resume().write(GET.repeat(20));
  await until(() => waiting.length === 20);
  const [{ request }] = waiting;
  assert.ok(request.socket.listenerCount("close") < 10, "no listener for each");
  waiting[1].response.end(); // which goes out only after the first
  waiting[0].response.end();
  await until(() => gate.inFlight === 18);
  assert.deepEqual(released(gate), [2, 0, 0]);
  client.destroy();
  await until(() => gate.inFlight === 0);
  for (const { response } of waiting) response.end();
  assert.deepEqual(released(gate), [2, 0, 18]);
});

test("what HTTP/2 cut off is ignored", { timeout: 30_000 }, async (context) => {
  const gate = new Gate("db", 5);
  const middleware = express(gate);
  const waiting = [];
  const server = http2.createServer((request, response) => middleware(request, response, () => waiting.push(response)));
  const client = http2.connect(`http://127.0.0.1:${await listening(server, context)}`);
  context.after(() => client.destroy());
  const good = client.request({ ":path": "/" }).resume();
  await until(() => waiting.length === 1);
  waiting[0].end("done");
  await once(good, "close");
  const called = client.request({ ":path": "/" }).on("error", () => {});
  await until(() => waiting.length === 2);
  called.close(http2.constants.NGHTTP2_CANCEL);
  await until(() => gate.inFlight === 0);
  assert.deepEqual(released(gate), [1, 0, 1]);
});

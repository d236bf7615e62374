// The gate in front of a pool of `pg`: nobody waits for a connection, and nobody opens one, without a permit.

const { outcomeOf } = require("./outcome.js");

const gated = new WeakSet();

/** What PostgreSQL says when it has too little of something, is starting, or gave up waiting for a lock. */
const OVERLOADED = /^(53...|57P03|55P03)$/;
const QUERY_CANCELED = "57014";

/** What a query's or a checkout's error says of the database. */
function outcomeOfQuery(error) {
  const code = error?.code;
  const message = String(error?.message);
  if (code === QUERY_CANCELED) return message.includes("timeout") ? "overload" : "ignore";
  if (typeof code === "string" && OVERLOADED.test(code)) return "overload";
  // The client's own timeouts have no code.
  if (
    code === undefined &&
    /timeout exceeded when trying to connect|due to connection timeout|Query read timeout/.test(message)
  ) {
    return "overload";
  }
  return outcomeOf(error);
}

/**
 * Has every checkout of a pool pass a gate: `pool.connect()` and `pool.query()`. A permit is taken before a connection
 * and given back with it. Shed: the promise rejects, or the callback gets, a Shed.
 *
 * @returns the same pool.
 */
function gatePool(pool, gate, options) {
  if (typeof pool?.connect !== "function") throw new TypeError("gatePool needs a Pool of pg");
  if (gated.has(pool)) throw new TypeError("this pool has a gate already: a second one would take two permits");
  const connect = pool.connect;
  pool.connect = (callback) => {
    if (typeof callback === "function") return connectWithCallback(callback);
    return connectWithPromise();
  };
  gated.add(pool);

  async function connectWithPromise() {
    const permit = gate.admit(options);
    try {
      return releasing(await connect.call(pool), permit);
    } catch (error) {
      permit.release(outcomeOfFailure(error));
      throw error;
    }
  }

  function connectWithCallback(callback) {
    let permit;
    try {
      permit = gate.admit(options);
    } catch (shed) {
      process.nextTick(callback, shed, undefined, () => {});
      return;
    }
    try {
      connect.call(pool, (error, client, done) => {
        if (error) {
          permit.release(outcomeOfFailure(error));
          callback(error, undefined, done);
        } else {
          releasing(client, permit);
          callback(undefined, client, client.release);
        }
      });
    } catch (error) {
      permit.release(outcomeOfFailure(error));
      throw error;
    }
  }

  return pool;
}

/** A checkout that failed did no work: unless it says that the database is overloaded, it says nothing. */
function outcomeOfFailure(error) {
  return outcomeOfQuery(error) === "overload" ? "overload" : "ignore";
}

/** Gives the permit back with the client, also where giving that back throws. */
function releasing(client, permit) {
  const release = client.release; // the pool sets a new one at each checkout
  client.release = (error) => {
    try {
      return release.call(client, error);
    } finally {
      permit.release(error instanceof Error ? outcomeOfQuery(error) : "success");
    }
  };
  return client;
}

module.exports = { gatePool, outcomeOfQuery };

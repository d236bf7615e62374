// Tidegate for Node.js, over include/tidegate.h. The API with its types and units is in index.d.ts.

const { ConfigError, Shed, TidegateError } = require("./errors.js");
const { LibraryError } = require("./library.js");
const { Gate } = require("./gate.js");
const { Gates } = require("./gates.js");
const { Permit } = require("./permit.js");
const { gatePool } = require("./pg.js");
const { express, fastify, shedResponse } = require("./http.js");
const { outcomeOf } = require("./outcome.js");
const { usePriority } = require("./priority.js");

module.exports = {
  ConfigError,
  Gate,
  Gates,
  LibraryError,
  Permit,
  Shed,
  TidegateError,
  express,
  fastify,
  gatePool,
  outcomeOf,
  shedResponse,
  usePriority,
};

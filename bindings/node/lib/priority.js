// The priority of everything called inside, where a call names none.

const { AsyncLocalStorage } = require("node:async_hooks");
const { levelOf } = require("./words.js");

let storage; // made at the first use: reading one costs every admission

/** Calls `work` with `priority` for all gates that are asked inside, also after an await. */
function usePriority(priority, work) {
  levelOf(priority);
  storage ??= new AsyncLocalStorage();
  return storage.run(priority, work);
}

/** The priority that is in use here, if any. */
function currentPriority() {
  return storage?.getStore();
}

module.exports = { currentPriority, usePriority };

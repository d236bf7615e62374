// The table by the Node.js package, as README.md says.
"use strict";

const fs = require("node:fs");
const { Gates, Shed } = require("../../../bindings/node/lib/index.js");
const { setClock } = require("../../../bindings/node/test/support/native.js");

const workload = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));

function count(counts, ...path) {
  const last = path.pop();
  const place = path.reduce((at, key) => (at[key] ??= {}), counts);
  place[last] = (place[last] ?? 0) + 1;
}

function row({ load, events }) {
  setClock(0);
  const gates = Gates.parse(workload.file.join("\n"));
  const gate = gates.get(workload.gate);
  const counts = { offered: {}, admitted: {}, shed: {}, released: {} };
  const permits = new Map();
  for (const event of events) {
    setClock(event.at_ms * 1_000_000);
    if (event.close) {
      gate.close();
    } else if (event.leave !== undefined) {
      if (permits.get(event.leave)?.release(event.outcome)) count(counts, "released", event.outcome);
    } else {
      const priority = gates.classify({ path: event.path });
      count(counts, "offered", priority);
      try {
        permits.set(event.arrive, gate.admit({ priority, weight: event.weight }));
        count(counts, "admitted", priority);
      } catch (shed) {
        if (!(shed instanceof Shed)) throw shed;
        count(counts, "shed", priority, shed.reason);
      }
    }
  }
  const { admitted, shed, released, highWater, inFlight } = gate.stats();
  const stats = { admitted, shed, released, high_water: highWater, in_flight: inFlight };
  return { load, ...counts, high_water: highWater, in_flight: inFlight, stats };
}

console.log(JSON.stringify({ language: "node", loads: workload.loads.map(row) }));

// Compiled, never run: what users write has the types that they expect, and what is wrong does not compile.

import express from "express";
import fastify from "fastify";
import { Pool } from "pg";
import * as tidegate from "../../lib/index.js";

const gate = new tidegate.Gate("db", 20, { thresholds: { sheddable: { reserve: 5 } }, rate: "150/min", burst: 10n });

const rows: Promise<number[]> = gate.run(async () => [1], { priority: "essential", weight: 2 });
const row: number = gate.runSync(() => 1);
const permit: tidegate.Permit | null = gate.tryAdmit();
permit?.release("overload");
const wait: number | null = gate.retryAfter({ priority: "sheddable" });
const shed: number = gate.stats().shed.critical.limit;

const found = new tidegate.Gate("db", null, {
  controller: { kind: "goodput", min: 4, max: 200n, ceiling: 80, prior: 29 },
  objective: 2,
  signals: [{ kind: "cpu" }, { kind: "pushed", name: "waits", enter: 0.8, leave: 0.6, enterFor: 0, ramp: 0 }],
});
found.signal("waits", 0.9, { goodFor: 5 });
const cause: "hold" | "probe" | "raise" | "lower" | "lost" | undefined = found.controller?.cause;
const good: number | undefined = found.controller?.window.good;
const age: number | undefined = found.limitHistory()[0]?.age;
const waits: number | null | undefined = found.pressure()?.signals[0]?.value;
const level: number | undefined = found.pressure()?.shares.sheddable;

const pool: Pool = tidegate.gatePool(new Pool(), gate);
express().use(
  tidegate.express(gate, { priority: (request) => (request.url === "/pay" ? "critical_plus" : undefined) }),
);
void fastify().register(tidegate.fastify, { gate, status: 429 });

// @ts-expect-error: no such priority
gate.tryAdmit({ priority: "urgent" });
// @ts-expect-error: no such outcome
permit?.release("failed");
// @ts-expect-error: permits come from gates
new tidegate.Permit();
// @ts-expect-error: read only
gate.limit = 3;
// @ts-expect-error: a permit may be missing
gate.tryAdmit().release();
// @ts-expect-error: no such controller
new tidegate.Gate("db", 20, { controller: { kind: "pid" } });
// @ts-expect-error: without a controller there is no limit but this
new tidegate.Gate("db", null);
// @ts-expect-error: no such signal
new tidegate.Gate("db", 20, { signals: [{ kind: "load" }] });
// @ts-expect-error: a gate may have no controller
gate.controller.kind;

export { age, cause, good, level, pool, row, rows, shed, wait, waits };

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

export { pool, row, rows, shed, wait };

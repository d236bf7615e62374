// The package against the semaphores that Node.js programs use, in one run: `node bench/ratios.js OUT.json`.
//
// They are JavaScript objects, and a gate is behind the border to native code, which is most of its price: the figures
// are reported, without a bar.

const fs = require("node:fs");
const { Semaphore: MutexSemaphore } = require("async-mutex");
const { Sema } = require("async-sema");
const { Bench } = require("tinybench");
const { Gate } = require("../lib/index.js");

const ROUNDS = 9;
const LIMIT = 20;

const gate = new Gate("bench", LIMIT);
const full = new Gate("bench-full", 0);
const sema = new Sema(LIMIT);
const fullSema = new Sema(1);
fullSema.tryAcquire();
const mutexSemaphore = new MutexSemaphore(LIMIT);
const work = async () => 1;

async function besideSema() {
  await sema.acquire();
  try {
    return await work();
  } finally {
    sema.release();
  }
}

const figures = [
  {
    name: "node.pair_vs_async_sema",
    ours: () => gate.tryAdmit().release(),
    peer: () => {
      sema.tryAcquire();
      sema.release();
    },
  },
  { name: "node.reject_vs_async_sema", ours: () => full.tryAdmit(), peer: () => fullSema.tryAcquire() },
  { name: "node.run_vs_async_sema", ours: () => gate.run(work), peer: besideSema },
  { name: "node.run_vs_async_mutex", ours: () => gate.run(work), peer: () => mutexSemaphore.runExclusive(work) },
];

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

/** Nanoseconds of each task, by turns, so that whatever else the machine does meets both. */
async function measured({ ours, peer }) {
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const bench = new Bench({ time: 60, warmupTime: 20 });
    bench.add("ours", ours).add("peer", peer);
    const [a, b] = (await bench.run()).map((task) => task.result.latency.mean * 1e6);
    rounds.push({ ours_ns: a, peer_ns: b, ratio: a / b });
  }
  const of = (key) => median(rounds.map((round) => round[key]));
  return { ours_ns: of("ours_ns"), peer_ns: of("peer_ns"), ratio: of("ratio"), bar: null, ok: true };
}

async function main() {
  const results = [];
  for (const figure of figures) results.push({ name: figure.name, ...(await measured(figure)) });
  console.table(results);
  fs.writeFileSync(process.argv[2], JSON.stringify({ figures: results }));
}

main();

/**
 * The yardstick: 10,000 services × 10 endpoints. Prints the time to render a full sync, the size of its payloads, the
 * longest time that the event loop was held, and what one change sends. With a variant, the same on the real kernel, in
 * a network namespace of its own.
 *
 *   pnpm exec node --expose-gc --conditions=@fairlead/source \
 *     bench/iptables.bench.ts [services] [endpoints] [nft|legacy]
 */
import { createRunner, openIptables } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import type { TableState } from "@fairlead/netfilter";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { BenchPlan, group } from "./cluster.ts";
import { LongestTurn } from "./longest-turn.ts";

const [services = 10_000, endpoints = 10] = process.argv.slice(2, 4).map(Number);
const variant = process.argv[4];

/** Takes payloads in and counts them. */
const sink = {
  family: "IPv4" as const,
  variant: "legacy" as const,
  payloads: 0,
  bytes: 0,
  async restore(payload: Iterable<string> | AsyncIterable<string>) {
    sink.payloads++;
    for await (const piece of payload) sink.bytes += piece.length;
  },
  save: async (table: TableState["table"]): Promise<TableState> => ({ table, chains: new Map() }),
  async *saveLines() {},
  chains: async () => new Set<string>(),
  list: async () => [],
  texts: async () => new Map(),
} satisfies RulesPort & { payloads: number; bytes: number };

if (variant === "nft" || variant === "legacy") await onKernel(variant);
else await onSink();

async function onSink(): Promise<void> {
  const plan = new BenchPlan(services, endpoints);
  const backend = createIptablesBackend(sink);
  for (const round of ["cold", "warm"]) {
    const { took, blocked } = await timed(() => backend.sync(plan));
    console.log(
      `full sync rendered, ${round}: ${took} ms, at most ${blocked} ms of it in one turn of the event loop, ${used()}`,
    );
  }
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  let peak = 0;
  const watch = createIptablesBackend(sink, {
    turn: async () => {
      peak = Math.max(peak, process.memoryUsage().heapUsed - before);
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
  });
  await watch.sync(plan);
  console.log(`heap beyond the plan while rendering: at most ${Math.round(peak / 2 ** 20)} MiB`);
  used();
  await changes(plan, backend, 200);
}

async function changes(
  plan: BenchPlan,
  backend: ReturnType<typeof createIptablesBackend>,
  rounds: number,
): Promise<void> {
  const endpoint: number[] = [];
  const service: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const i = ((round >> 1) * 97) % services;
    const changed = plan.put(group(i, endpoints - (round % 2 === 0 ? 1 : 0)));
    endpoint.push((await timed(() => backend.apply(plan, changed))).took);
  }
  const sentByEndpoints = used(rounds);
  for (let round = 0; round < rounds; round++) {
    const other = group(services + (round >> 1), endpoints);
    const changed = round % 2 === 0 ? plan.put(other) : plan.remove(other.id);
    service.push((await timed(() => backend.apply(plan, changed))).took);
  }
  console.log(
    `one endpoint change: median ${median(endpoint)} ms, worst ${Math.max(...endpoint)} ms, ${sentByEndpoints}`,
  );
  console.log(`one service change: median ${median(service)} ms, worst ${Math.max(...service)} ms, ${used(rounds)}`);
}

async function onKernel(which: "nft" | "legacy"): Promise<void> {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const port = await openIptables(runner, { family: "IPv4", variant: which });
  const backend = createIptablesBackend(port);
  const plan = new BenchPlan(services, endpoints);
  for (const round of ["into an empty kernel", "over itself"]) {
    const { took, blocked } = await timed(() => backend.sync(plan));
    console.log(`${which}: full sync ${round}: ${took} ms, at most ${blocked} ms of it in one turn of the event loop`);
  }
  await changes(plan, backend, 10);
  const probe = await timed(() => backend.intact(plan));
  console.log(`${which}: intact: ${probe.took} ms`);
  const cleanup = await timed(() => backend.cleanup());
  console.log(`${which}: cleanup: ${cleanup.took} ms`);
}

async function timed(work: () => Promise<unknown>): Promise<{ took: number; blocked: number }> {
  const turns = new LongestTurn();
  const start = performance.now();
  await work();
  const took = performance.now() - start;
  return { took: round(took), blocked: round(turns.end()) };
}

/** What the sink has taken in since the last time, by the number of changes. */
function used(changes = 1): string {
  const text = `${Math.round(sink.bytes / changes)} bytes in ${round(sink.payloads / changes)} payloads`;
  sink.bytes = 0;
  sink.payloads = 0;
  return text;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

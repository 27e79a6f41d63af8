/**
 * The yardstick: 10,000 services × 10 endpoints. Prints times and the heap that state and plan keep.
 *
 *   pnpm exec node --expose-gc --conditions=@fairlead/source bench/core.bench.ts [services] [endpoints]
 */
import { toEnd } from "@fairlead/base";
import { decodeEndpointSlice, decodeService, Planner, type PlannerOptions } from "../src/index.ts";
import { ClusterState } from "../src/state/cluster-state.ts";
import { clusterJSON, decodeInto, rawSlice } from "./cluster.ts";

const [services = 10_000, endpoints = 10] = process.argv.slice(2).map(Number);

const OPTIONS: PlannerOptions = {
  nodeName: "node-with-a-longer-name-1",
  families: ["IPv4"],
  nodeIPs: { IPv4: "10.201.0.10" },
  detectors: { IPv4: { kind: "cidrs", cidrs: ["10.144.0.0/12"] } },
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
};
const memory = { get: () => undefined };

const text = clusterJSON(services, endpoints);
decodeAlone();
await settle();
const before = heap();
const state = new ClusterState();
decodeInto(state, JSON.parse(text.services), JSON.parse(text.slices));
await settle();
const stateHeap = heap() - before;
const planner = new Planner(OPTIONS);
const full = timed(() => toEnd(planner.replan(state, state.takeDirty().services, memory)));
const groups = planner.plan("IPv4").groups.size;
await settle();
const bothHeap = heap() - before;
console.log(`state ${mb(stateHeap)}, state and plan ${mb(bothHeap)} (${groups} groups)`);
console.log(`full plan ${ms(full.took)}, longest slice ${ms(longestSlice())}`);
console.log(`same objects again ${ms(timed(() => toEnd(planner.replan(state, "all", memory))).took)}`);
console.log(
  `one endpoint change, decoded, tracked and planned: median ${ms(median(oneChange()))}, worst ${ms(Math.max(...oneChange()))}`,
);

function decodeAlone(): void {
  const [raw, rawServices] = [JSON.parse(text.slices), JSON.parse(text.services)];
  for (const round of ["cold", "warm"]) {
    const slices = timed(() => raw.map((one: unknown) => decodeEndpointSlice(one)));
    const decoded = timed(() => rawServices.map((one: unknown) => decodeService(one)));
    console.log(`decode ${round}: ${services} slices ${ms(slices.took)}, services ${ms(decoded.took)}`);
  }
}

/** Takes one endpoint of a service away and puts it back, over and over. */
function oneChange(): number[] {
  return Array.from({ length: 200 }, (_, round) => {
    const raw = rawSlice(((round >> 1) * 97) % services, endpoints - (round % 2 === 0 ? 1 : 0));
    return timed(() => {
      const { object } = decodeEndpointSlice(raw);
      if (object !== undefined) state.upsertSlice(object);
      toEnd(planner.replan(state, state.takeDirty().services, memory));
    }).took;
  });
}

function longestSlice(): number {
  const fresh = new Planner(OPTIONS).replan(state, "all", memory);
  let longest = 0;
  for (;;) {
    const slice = timed(() => fresh.next());
    longest = Math.max(longest, slice.took);
    if (slice.result.done) return longest;
  }
}

function timed<T>(work: () => T): { took: number; result: T } {
  const start = performance.now();
  const result = work();
  return { took: performance.now() - start, result };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function heap(): number {
  return process.memoryUsage().heapUsed;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/**
 * One service with very many endpoints: what each step costs in processor time, and the longest that the event loop is
 * held.
 *
 *   pnpm exec node --conditions=@fairlead/source bench/large-service.ts [endpoints] [endpoints of a slice]
 */
import { ClusterState, decodeEndpointSlice, decodeService, Planner } from "../src/index.ts";

const [endpoints = 100_000, perSlice = 100] = process.argv.slice(2).map(Number);

const raws = Array.from({ length: Math.ceil(endpoints / perSlice) }, (_, at) => rawSlice(at, perSlice));
const state = new ClusterState();
const planner = new Planner({
  nodeName: "node-1",
  families: ["IPv4"],
  nodeIPs: {},
  detectors: { IPv4: { kind: "cidrs", cidrs: ["10.144.0.0/12"] } },
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
});

const { object: service } = decodeService({
  metadata: { namespace: "default", name: "large" },
  spec: { clusterIP: "10.96.0.1", ports: [{ port: 80 }] },
});
if (service !== undefined) state.upsertService(service);
const decoded = timed("decode", () => raws.map((raw) => decodeEndpointSlice(raw).object));
timed("state", () => {
  for (const slice of decoded) if (slice !== undefined) state.upsertSlice(slice);
});
plan("full plan");
for (const at of [0, Math.floor(raws.length / 2)]) {
  const { object } = decodeEndpointSlice(rawSlice(at, perSlice - 1));
  if (object !== undefined) state.upsertSlice(object);
  plan("one endpoint gone");
}

function plan(what: string): void {
  const step = planner.replan(state, state.takeDirty().services, { get: () => undefined });
  let [all, longest, turns] = [0, 0, 0];
  for (let done = false; !done; turns++) {
    const before = cpu();
    done = step.next().done ?? false;
    all += cpu() - before;
    longest = Math.max(longest, cpu() - before);
  }
  console.log(`${what}: ${Math.round(all)} ms in ${turns} turns, the longest ${Math.round(longest)} ms`);
}

function timed<T>(what: string, work: () => T): T {
  const before = cpu();
  const result = work();
  console.log(`${what}: ${Math.round(cpu() - before)} ms`);
  return result;
}

function cpu(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function rawSlice(at: number, count: number): unknown {
  return {
    metadata: { namespace: "default", name: `large-${at}`, labels: { "kubernetes.io/service-name": "large" } },
    addressType: "IPv4",
    ports: [{ name: "", port: 8080, protocol: "TCP" }],
    endpoints: Array.from({ length: count }, (_, i) => {
      const n = at * perSlice + i;
      const address = `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
      return { addresses: [address], nodeName: `node-${n % 100}`, conditions: { ready: true } };
    }),
  };
}

/**
 * What a learned CIDR costs from its object to the kernel, in nftables mode, in a network namespace of its own:
 * decision, planning and transaction, beside what an endpoint of one service costs there. Median of the rounds, by the
 * clock and in processor time of the process; the part of the kernel by the clock; the longest turn in processor time.
 *
 * Beside it what is made anew with each CIDR, whatever their number: the file of the last known, and with
 * excluded-clients the list of all excluded addresses.
 *
 *     node --conditions=@fairlead/source bench/learn.ts [services] [endpoints] [CIDRs] [all | excluded-clients]
 */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNftablesBackend, nftablesFacts } from "@fairlead/backend-nftables";
import { inSlices, systemClock } from "@fairlead/base";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  Planner,
  type PlannerOptions,
  type ServiceKey,
} from "@fairlead/core";
import { LiveNetworks } from "@fairlead/intake";
import { openNftables } from "@fairlead/kernel";
import { createNamespace, netlinkIn } from "@fairlead/kernel/netns";
import { type LastKnown, type NetworksDecision, networkSource } from "@fairlead/networks";
import { endpointSlice, service } from "@fairlead/testkit";
import type { Log } from "../src/log.ts";
import { KnownKeeper } from "../src/networks.ts";

const [services = 10_000, endpoints = 10, cidrs = 1_000] = process.argv.slice(2, 5).map(Number);
const excludedFrontends = process.argv[5] === "excluded-clients" ? "excluded-clients" : "all";
const ROUNDS = 15;
/** Milliseconds that changes are gathered for: nothing more comes here. */
const DEBOUNCE = 0;
const MEMORY = { get: () => undefined };

const state = new ClusterState();
const address = (of: number, at: number) => {
  const number = of * endpoints + at;
  return `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
};
const put = (of: number, first = address(of, 0)) => {
  const others = Array.from({ length: endpoints - 1 }, (_, at) => ({ address: address(of, at + 1) }));
  const fields = { service: `s${of}`, ports: [{ port: 8080 }], endpoints: [{ address: first }, ...others] };
  const { object } = decodeEndpointSlice(endpointSlice(`s${of}-1`, { ...fields, family: "IPv4" }));
  if (object !== undefined) state.upsertSlice(object);
};
for (let at = 0; at < services; at++) {
  const clusterIPs = [`10.${96 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`];
  const { object } = decodeService(service(`s${at}`, { clusterIPs, ports: [{ port: 80 }] }));
  if (object !== undefined) state.upsertService(object);
  put(at);
}

const folder = await mkdtemp(join(tmpdir(), "fairlead-bench-learn-"));
const file = join(folder, "networks.json");
const complain = (message: string) => console.error(message);
const log: Log = { info: complain, warn: complain, error: complain, verbose: () => {} };
const keeper = new KnownKeeper(file, log);
let lastKnown: (() => LastKnown) | undefined;
let decided: (decision: NetworksDecision) => void = () => {};
const live = new LiveNetworks({
  setup: {
    settings: {
      written: { own: [], excluded: [] },
      sources: { own: [], excluded: [networkSource("kube-ovn-subnets")] },
      filter: { mixedServices: "own-endpoints", excludedFrontends, ownershipAnnotation: true },
      debounceMs: DEBOUNCE,
      removalDelayMs: 600_000,
      consentNamespace: "kube-system",
    },
  },
  state,
  clock: systemClock,
  onProblem: (_source, object, problem) => console.error(`${object}: ${problem}`),
  onDecided: () => {},
  keep: (read) => {
    lastKnown = read;
  },
});
const [subnets, vpcs] = live.subscriptions;
const learn = (name: string, cidrBlock: string) =>
  subnets?.onChange({ type: "upsert", key: `/${name}`, object: { metadata: { name }, spec: { cidrBlock } } });

await using namespace = await createNamespace();
const nft = await openNftables({ open: netlinkIn(namespace).transactions });
let kernel = 0;
const commit = async (batch: Parameters<typeof nft.commit>[0]) => {
  const began = performance.now();
  await nft.commit(batch);
  kernel += performance.now() - began;
};
const backend = createNftablesBackend({ ...nft, commit }, { family: "IPv4" });
let options: PlannerOptions = {
  nodeName: "node-a",
  families: ["IPv4"],
  nodeIPs: { IPv4: "172.30.0.11" },
  detectors: {},
  nodePortAddresses: { IPv4: { kind: "list", addresses: ["172.30.0.11"] } },
  masqueradeAll: false,
  semantics: nftablesFacts.semantics,
};
const planner = new Planner(options);

/** As the agent does it: decide, where CIDRs changed; plan what that concerns and what is dirty; program that. */
async function sync(decision?: NetworksDecision): Promise<void> {
  if (decision !== undefined) options = { ...options, filter: decision.filter };
  live.syncBegins();
  const dirty: ReadonlySet<ServiceKey> = state.takeDirty().services;
  planner.setOptions(options, live.takeConcerned());
  const step = await inSlices(planner.replan(state, dirty, MEMORY));
  await live.see(dirty);
  const change = step.changes.get("IPv4");
  if (change !== undefined) await backend.apply(planner.plan("IPv4"), change);
}

async function decision(change: () => void): Promise<NetworksDecision> {
  const { promise, resolve } = Promise.withResolvers<NetworksDecision>();
  decided = resolve;
  change();
  return promise;
}

/** Milliseconds of this thread's processor time: on a busy machine the clock says more of the others. */
function thread(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

let longest = 0;
let turned = thread();
const turns = setInterval(() => {
  const now = thread();
  longest = Math.max(longest, now - turned);
  turned = now;
}, 1);

async function measured(what: string, rounds: number, work: (round: number) => Promise<void>): Promise<void> {
  longest = 0;
  turned = thread();
  const figures: { readonly took: number; readonly cpu: number; readonly kernel: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    kernel = 0;
    const cpu = process.cpuUsage();
    const began = performance.now();
    await work(round);
    const { user, system } = process.cpuUsage(cpu);
    figures.push({ took: performance.now() - began, cpu: (user + system) / 1_000, kernel });
  }
  const median = (key: keyof (typeof figures)[number]) =>
    (figures.map((one) => one[key]).sort((a, b) => a - b)[rounds >>> 1] ?? 0).toFixed(1);
  const parts = `${median("took")} ms, of which the kernel ${median("kernel")}; CPU ${median("cpu")}`;
  console.log(`${what}: ${parts}; longest turn CPU ${longest.toFixed(1)}`);
}

console.log(`${services} services of ${endpoints} endpoints, ${cidrs} CIDRs`);
live.start({ onFirst: () => {}, onChange: (next) => decided(next) });
const first = await decision(() => {
  subnets?.onState?.("listed");
  vpcs?.onState?.("absent");
  live.synced("services");
  live.synced("endpointSlices");
});
options = { ...options, filter: first.filter };
planner.setOptions(options);
await inSlices(planner.replan(state, "all", MEMORY));
state.takeDirty();
await backend.sync(planner.plan("IPv4"));
await measured(`${cidrs} CIDRs at once`, 1, async () => {
  await sync(
    await decision(() => {
      // None beside another: those would be one region.
      for (let n = 0; n < cidrs; n++) learn(`many-${n}`, `10.${n >> 7}.${(n & 127) * 2}.0/24`);
    }),
  );
});
await measured("one service's endpoint moves", ROUNDS, async (round) => {
  put(round, `10.200.0.${round}`);
  await sync();
});
// Where the endpoints of a service fill a CIDR it has all of them, and the service is foreign, not mixed.
const length = Number.isInteger(Math.log2(endpoints)) ? 32 - Math.log2(endpoints) : 32;
const oneMore = (round: number) => {
  const cidr = `${address(services - 1 - round, 0)}/${length}`;
  return decision(() => learn(`one-${round}`, cidr));
};
await measured("one more CIDR with one service in it", ROUNDS, async (round) => sync(await oneMore(round)));
let filter = first.filter;
const untouched = async (round: number) => {
  ({ filter } = await decision(() => learn(`nobody-${round}`, `10.199.${2 * round}.0/24`)));
};
await measured("one more CIDR with no service in it, decided only", ROUNDS, untouched);
await measured("the same, and its list of all excluded clients", ROUNDS, async (round) => {
  await untouched(ROUNDS + round);
  filter.excludedClients?.("IPv4");
});
await measured("the same, and the file of the last known", ROUNDS, async (round) => {
  await untouched(2 * ROUNDS + round);
  if (lastKnown !== undefined) keeper.keep(lastKnown);
  await keeper.flush();
});
console.log(`the file has ${(await stat(file)).size} bytes`);
clearInterval(turns);
live.stop();
await rm(folder, { recursive: true });

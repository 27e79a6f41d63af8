import { createIptablesBackend, iptablesSemantics } from "@fairlead/backend-iptables";
import { toEnd } from "@fairlead/base";
import {
  ClusterState,
  createIntern,
  decodeEndpointSlice,
  decodeService,
  Planner,
  type PlannerOptions,
  type Service,
} from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import { parseSave, type RuleSet, renderRuleSet, type Table } from "@fairlead/netfilter";
import { trace } from "@fairlead/trace";
import { movedAddress, serviceObject, sliceObject } from "../cluster/objects.ts";

/** One kind of work, done once per call. */
export interface MicroCase {
  readonly name: string;
  readonly run: () => unknown;
}

const SERVICES = 1000;
const ENDPOINTS = 10;
const EXCLUDED_CIDRS = 1024;

const OPTIONS: PlannerOptions = {
  nodeName: "bench-node",
  families: ["IPv4"],
  nodeIPs: { IPv4: "172.30.0.11" },
  detectors: { IPv4: { kind: "cidrs", cidrs: ["10.144.0.0/12"] } },
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: iptablesSemantics,
};

const memory = { get: () => undefined };

/** What matters for the time of a sync, of each package, at 1,000 services with 10 endpoints. */
export async function microCases(): Promise<readonly MicroCase[]> {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  decodeAll(state);
  toEnd(planner.replan(state, "all", memory));
  const rules = await programmed(planner);
  const text = [...renderRuleSet(rules)];
  let moves = 0;
  return [
    { name: "core: decode 1,000 services and slices", run: () => decodeAll(new ClusterState()) },
    { name: "core: plan 1,000 services", run: () => toEnd(planner.replan(state, "all", memory)) },
    { name: "core: plan one change", run: () => toEnd(planner.replan(state, changed(state, ++moves), memory)) },
    { name: "backend-iptables: render 1,000 services", run: () => rendered(planner) },
    { name: "netfilter: parse 1,000 services' rules", run: () => parseSave(text, { family: "IPv4" }) },
    { name: `endpoint-filter: decide, ${EXCLUDED_CIDRS} CIDRs`, run: decision() },
    { name: "trace: one packet through 1,000 services", run: () => traced(rules) },
  ];
}

function decodeAll(state: ClusterState): void {
  const intern = createIntern();
  for (let index = 0; index < SERVICES; index++) {
    const service = decodeService(serviceObject(index), intern).object;
    const slice = decodeEndpointSlice(sliceObject(index, ENDPOINTS), intern).object;
    if (service !== undefined) state.upsertService(service);
    if (slice !== undefined) state.upsertSlice(slice);
  }
}

function changed(state: ClusterState, number: number) {
  const slice = decodeEndpointSlice(
    sliceObject(0, ENDPOINTS, 0, new Map([[0, movedAddress(number % 2)]])),
    createIntern(),
  );
  if (slice.object !== undefined) state.upsertSlice(slice.object);
  return state.takeDirty().services;
}

/** A full sync into nowhere: what remains is the work of making its text. */
async function rendered(planner: Planner): Promise<void> {
  const nowhere = {
    family: "IPv4",
    variant: "legacy",
    restore: async (payload: Iterable<string> | AsyncIterable<string>) => {
      for await (const _ of payload);
    },
    save: async (table: Table) => ({ table, chains: new Map() }),
    async *saveLines() {},
    chains: async () => new Set<string>(),
    list: async () => undefined,
    texts: async () => new Map<string, readonly string[]>(),
  } as const;
  await createIptablesBackend(nowhere, { turn: async () => {} }).sync(planner.plan("IPv4"));
}

/** What the kernel holds after a full sync. */
async function programmed(planner: Planner): Promise<RuleSet> {
  const kernel = new FakeIptables({ family: "IPv4", variant: "legacy" });
  await createIptablesBackend(kernel, { turn: async () => {} }).sync(planner.plan("IPv4"));
  return kernel.ruleSet();
}

function decision(): () => unknown {
  const excludeCIDRs = Array.from(
    { length: EXCLUDED_CIDRS },
    (_, index) => `10.${index >> 2}.${(index & 3) << 6}.0/19`,
  );
  const mixed = { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true } as const;
  const filter = createEndpointFilter({ excludeCIDRs, ...mixed });
  const { object } = decodeService(serviceObject(0), createIntern());
  const service: Service | undefined = object;
  const endpoints = Array.from({ length: ENDPOINTS }, (_, place) => ({ address: movedAddress(place * 997) }));
  return () => service && filter.decide(service, "IPv4", endpoints, undefined);
}

function traced(rules: RuleSet): unknown {
  const packet = { family: "IPv4", protocol: "tcp", source: "192.0.2.9", sport: 40000 } as const;
  const node = { localAddresses: ["172.30.0.11"], outInterface: () => "eth0" };
  return trace(rules, { ...packet, destination: "10.100.1.244", dport: 80, inInterface: "eth0" }, node);
}

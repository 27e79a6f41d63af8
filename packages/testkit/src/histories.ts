/** Histories of changes for properties. */

import type {
  EndpointFilter,
  ForwardingPlan,
  OwnershipDecision,
  PlanChange,
  PlannerOptions,
  TrafficPolicy,
} from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import { createTracer, type Environment, type Outcome, type Packet, type Rules } from "@fairlead/trace";
import fc from "fast-check";
import { clientA, NODE_A, outside } from "./addresses.ts";
import { TestCluster } from "./clusters.ts";
import { endpointSlice, type RawObject, service } from "./objects.ts";
import { nodeEnvironment } from "./run-case.ts";

/** Slots to change at once: what each is to hold; undefined: nothing. */
export type SlotChanges = Iterable<readonly [slot: number, state: SlotState | undefined]>;

/** The change of a plan that stays as it is. */
export const noChange: PlanChange = {
  family: "IPv4",
  groups: new Map(),
  healthChecks: new Map(),
  foreignClusterIPs: { added: [], removed: [] },
};

/** A cluster of slots, and the IPv4 plans of its changes. */
export class World {
  readonly #cluster: TestCluster;
  readonly slots = new Map<number, SlotState>();

  constructor(options: PlannerOptions) {
    this.#cluster = new TestCluster(options);
    this.#cluster.replan();
  }

  get plan(): ForwardingPlan {
    return this.#cluster.plan("IPv4");
  }

  /** Plans for other options; undefined where the plan stays as it is. */
  setOptions(options: PlannerOptions): PlanChange | undefined {
    this.#cluster.setOptions(options);
    return this.#replan();
  }

  /** @returns undefined where the plan stays as it is */
  change(steps: SlotChanges): PlanChange | undefined {
    for (const [slot, state] of steps) this.#set(slot, state);
    return this.#replan();
  }

  #replan(): PlanChange | undefined {
    return this.#cluster.replan().changes.get("IPv4");
  }

  #set(slot: number, state: SlotState | undefined): void {
    const before = this.slots.get(slot);
    if (before !== undefined) {
      const idOf = ({ kind, metadata }: RawObject) => `${kind} ${metadata.name}`;
      const kept = state === undefined ? [] : slotObjects(slot, state).map(idOf);
      this.#cluster.remove(...slotObjects(slot, before).filter((one) => !kept.includes(idOf(one))));
    }
    if (state === undefined) this.slots.delete(slot);
    else {
      this.#cluster.put(...slotObjects(slot, state));
      this.slots.set(slot, state);
    }
  }
}

/** Services that come and go in the properties: what each slot can hold. */

export interface SlotState {
  readonly type: "ClusterIP" | "NodePort" | "LoadBalancer";
  readonly protocol: "TCP" | "UDP";
  readonly ports: 1 | 2;
  readonly internal: TrafficPolicy;
  readonly external: TrafficPolicy;
  readonly externalIP: boolean;
  readonly ranges: boolean;
  readonly nodePortRanges: boolean;
  /** The annotation that has clients refused where there is no local endpoint. */
  readonly refuses: boolean;
  readonly affinity: boolean;
  /** Which of the four endpoints there are; the first two run here. */
  readonly endpoints: readonly ("ready" | "terminating" | "none")[];
  /** Of the first two endpoints, of the others, and of what is refused; absent: all are in one slice. */
  readonly weights?: readonly [first: number, others: number, refused: number] | undefined;
}

type Changes = readonly (readonly [slot: number, state: SlotState | undefined])[];

const slotState: fc.Arbitrary<SlotState> = fc.record({
  type: fc.constantFrom("ClusterIP", "NodePort", "LoadBalancer"),
  protocol: fc.constantFrom("TCP", "UDP"),
  ports: fc.constantFrom(1, 2),
  internal: fc.constantFrom("Cluster", "Local"),
  external: fc.constantFrom("Cluster", "Local"),
  externalIP: fc.boolean(),
  ranges: fc.boolean(),
  nodePortRanges: fc.boolean(),
  refuses: fc.boolean(),
  affinity: fc.boolean(),
  endpoints: fc.array(fc.constantFrom("ready", "terminating", "none"), { minLength: 4, maxLength: 4 }),
  weights: fc.option(fc.tuple(fc.constantFrom(0, 1, 9), fc.constantFrom(1, 9), fc.constantFrom(0, 5)), {
    nil: undefined,
  }),
});

/** Some changes of these slots, in order: what each comes to hold; undefined: nothing. */
export function slotChanges(slots: readonly number[], most = 6): fc.Arbitrary<Changes> {
  const change = fc.tuple(fc.constantFrom(...slots), fc.option(slotState, { nil: undefined }));
  return fc.array(change, { minLength: 1, maxLength: most });
}

/** Changes batch by batch: as they come, and there and back again, all at once, or twice. */
export function historyOf<State>(
  batch: fc.Arbitrary<readonly (readonly [slot: number, state: State | undefined])[]>,
): fc.Arbitrary<readonly (readonly (readonly [slot: number, state: State | undefined])[])[]> {
  const history = fc.array(batch, { minLength: 1, maxLength: 6 });
  return fc.oneof(
    { weight: 4, arbitrary: history },
    history.map((batches) => [...batches, batches.flat().map(([slot]) => [slot, undefined] as const)]),
    history.map((batches) => [batches.flat()]),
    history.map((batches) => [...batches, ...batches]),
  );
}

/** Changes of five slots. */
export const slotHistory: fc.Arbitrary<readonly Changes[]> = historyOf(slotChanges([1, 2, 3, 4, 5], 4));

/** A plain TCP service of one port with one endpoint, which runs here, or with the given state. */
export function webState(state: Partial<SlotState> = {}): SlotState {
  return {
    type: "ClusterIP",
    protocol: "TCP",
    ports: 1,
    internal: "Cluster",
    external: "Cluster",
    externalIP: false,
    ranges: false,
    nodePortRanges: false,
    refuses: false,
    affinity: false,
    endpoints: ["ready", "none", "none", "none"],
    ...state,
  };
}

/**
 * Some slots share an external address: the plan gives it to one of them. It is no endpoint's, or that endpoint would
 * be on every node in ipvs mode, which binds it.
 */
export function externalAddress(slot: number): string {
  return `192.0.2.${100 + (slot % 3)}`;
}

export function slotObjects(slot: number, state: SlotState): readonly RawObject[] {
  const external = state.type !== "ClusterIP";
  const names = ["main", "other"].slice(0, state.ports);
  const made = service(`slot-${slot}`, {
    type: state.type,
    clusterIPs: [slotClusterIP(slot)],
    ports: names.map((name, index) => ({
      name,
      port: 80 + index,
      targetPort: 8080 + index,
      protocol: state.protocol,
      ...(external && { nodePort: 30_000 + slot * 2 + index }),
    })),
    internalTrafficPolicy: state.internal,
    ...(external && { externalTrafficPolicy: state.external }),
    ...(state.externalIP && { externalIPs: [externalAddress(slot)] }),
    ...(state.type === "LoadBalancer" && { ingress: [{ ip: `203.0.113.${slot}` }] }),
    ...(state.type === "LoadBalancer" && state.ranges && { sourceRanges: ["198.51.100.0/24", "10.201.0.0/24"] }),
    ...(state.type === "LoadBalancer" && state.external === "Local" && { healthCheckNodePort: 31_000 + slot }),
    ...(state.affinity && { affinitySeconds: 60 }),
    annotations: {
      ...(external &&
        state.nodePortRanges && { "fairlead.dev/node-port-source-ranges": "198.51.100.0/24,10.144.0.0/16" }),
      ...(state.refuses && { "fairlead.dev/no-local-endpoint": "reject" }),
    },
  });
  const endpoints = state.endpoints.flatMap((kind, index) =>
    kind === "none"
      ? []
      : [
          {
            address: `10.144.${(index < 2 ? 0 : 128) + (slot >> 6)}.${(slot & 63) * 4 + index}`,
            nodeName: index < 2 ? "node-a" : "node-b",
            ready: kind === "ready",
            serving: true,
            terminating: kind === "terminating",
          },
        ],
  );
  const ports = names.map((name, index) => ({ name, port: 8080 + index, protocol: state.protocol }));
  const slice = (name: string, list: typeof endpoints, annotations?: Readonly<Record<string, string>>) =>
    endpointSlice(name, {
      ...{ service: `slot-${slot}`, family: "IPv4", ports, endpoints: list },
      ...(annotations && { annotations }),
    });
  if (state.weights === undefined) return [made, slice(`slot-${slot}`, endpoints)];
  const [first, others, refused] = state.weights.map((weight) => ({ "fairlead.dev/weight": String(weight) }));
  const here = ({ nodeName }: { readonly nodeName: string }) => nodeName === "node-a";
  return [
    made,
    slice(`slot-${slot}`, endpoints.filter(here), first),
    slice(
      `slot-${slot}-others`,
      endpoints.filter((one) => !here(one)),
      others,
    ),
    slice(`slot-${slot}-refused`, [], { ...refused, "fairlead.dev/weight-refused": "true" }),
  ];
}

export function slotClusterIP(slot: number): string {
  return `10.96.3.${slot}`;
}

/** Where packets to every frontend that a slot can have end, by a name for the packet. */
export function traceSlots(
  ruleSet: RuleSet | Rules,
  slots: readonly number[],
  environment: Environment = nodeEnvironment,
): ReadonlyMap<string, readonly Outcome[]> {
  const tracer = createTracer(ruleSet);
  const packets = slots.flatMap((slot) => [...slotPackets(slot)]);
  return new Map(packets.map((packet) => [nameOf(packet), tracer.trace(packet, environment)]));
}

/** Every second slot is another network's, which serves clients in these CIDRs itself. */
export function dividingFilter(excludedClients: readonly string[]): EndpointFilter {
  return {
    excludedClients: () => excludedClients,
    decide({ name }): OwnershipDecision {
      const foreign = Number(name.split("-").at(-1)) % 2 === 1;
      return {
        ownership: foreign ? "foreign" : "ours",
        decided: true,
        why: "slots are divided",
        frontends: foreign ? "all-but-excluded-clients" : "all",
        decidingCIDRs: [],
        ownEndpoints: 0,
        excludedEndpoints: 0,
      };
    },
  };
}

function nameOf({ protocol, source, destination, dport }: Packet): string {
  return `${protocol} ${source} → ${destination}:${dport}`;
}

function* slotPackets(slot: number): Generator<Packet> {
  const targets = [
    { destination: slotClusterIP(slot), dport: 80 },
    { destination: slotClusterIP(slot), dport: 81 },
    { destination: externalAddress(slot), dport: 80 },
    { destination: `203.0.113.${slot}`, dport: 80 },
    { destination: NODE_A.addresses.IPv4, dport: 30_000 + slot * 2 },
  ];
  for (const { addresses, interface: inInterface } of [clientA, NODE_A, outside]) {
    for (const protocol of ["tcp", "udp"]) {
      for (const target of targets) {
        const packet: Packet = { family: "IPv4", protocol, source: addresses.IPv4, sport: 40_000, ...target };
        yield inInterface === undefined ? packet : { ...packet, inInterface };
      }
    }
  }
}

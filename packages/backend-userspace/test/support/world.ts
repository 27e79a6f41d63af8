import { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan, IPFamily, PlanChange } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables, type Faults } from "@fairlead/kernel/fake";
import { type Rule, type RuleSet, renderRule } from "@fairlead/netfilter";
import {
  clusterObjects,
  ovnA,
  PlannedCluster,
  STANDARD_OPTIONS,
  type Workload,
  type WorkloadFields,
  webA1,
  webA2,
  webB1,
  workload,
} from "@fairlead/testkit";
import fc from "fast-check";
import { FakeSockets } from "../../src/fake/index.ts";
import {
  createUserspaceBackend,
  type RelayingBackend,
  type UserspaceOptions,
  userspaceSemantics,
} from "../../src/index.ts";

/** What a slot of the world holds: a service, or none. */
type Slot = WorkloadFields | undefined;

const hosts = [webA1, webA2, webB1, ovnA];

/** Any service: of ours, of the other network, of both; with any frontends, policies and endpoints. */
const anySlot: fc.Arbitrary<Slot> = fc.option(
  fc.record(
    {
      endpoints: fc.subarray(hosts),
      protocol: fc.constantFrom("TCP" as const, "UDP" as const, "SCTP" as const),
      nodePort: fc.boolean(),
      external: fc.boolean(),
      loadBalancer: fc.constantFrom("VIP" as const, "Proxy" as const),
      internal: fc.constantFrom("Cluster" as const, "Local" as const),
      externally: fc.constantFrom("Cluster" as const, "Local" as const),
      sourceRanges: fc.subarray(["198.51.100.0/24", "10.144.1.0/24", "10.0.0.0/8"], { minLength: 1 }),
      affinitySeconds: fc.constant(60),
    },
    { requiredKeys: ["endpoints"] },
  ),
  { nil: undefined },
);

/** What slots hold from now on. */
export type Step = readonly (readonly [number, Slot])[];

/** Changes of some of that many slots at once. */
export function stepOf(slots: number): fc.Arbitrary<Step> {
  return fc.array(fc.tuple(fc.integer({ min: 1, max: slots }), anySlot), { minLength: 1, maxLength: 4 });
}

/** A cluster of slots, and the plans of its changes. */
export class World {
  readonly slots = new Map<number, WorkloadFields>();
  readonly #cluster: PlannedCluster;

  constructor() {
    const {
      excludeClusterCIDRs: excludeCIDRs,
      mixedServices,
      excludedFrontends,
      ownershipAnnotation,
    } = STANDARD_OPTIONS;
    const filter = createEndpointFilter({ excludeCIDRs, mixedServices, excludedFrontends, ownershipAnnotation });
    this.#cluster = new PlannedCluster({ options: STANDARD_OPTIONS, semantics: userspaceSemantics, filter });
    this.change([]);
  }

  plan(family: IPFamily = "IPv4"): ForwardingPlan {
    return this.#cluster.plan(family);
  }

  /** Changes slots at once; undefined where the plan stays as it is. */
  change(steps: Iterable<readonly [number, Slot]>): PlanChange | undefined {
    for (const [slot, fields] of steps) {
      if (fields === undefined) this.slots.delete(slot);
      else this.slots.set(slot, fields);
    }
    const objects = [...this.slots].flatMap(([slot, fields]) => this.workload(slot, fields).objects);
    return this.#cluster.advance([...clusterObjects, ...objects]).changes.get("IPv4");
  }

  workload(slot: number, fields: WorkloadFields = this.slots.get(slot) ?? { endpoints: [] }): Workload {
    return workload(slot, fields);
  }
}

/** A backend over a kernel in memory, with the world that it serves. */
export interface Live {
  readonly world: World;
  readonly kernel: FakeIptables;
  readonly faults: Faults;
  readonly sockets: FakeSockets;
  readonly clock: VirtualClock;
  readonly problems: string[];
  readonly backend: RelayingBackend;
  change(steps: Iterable<readonly [number, Slot]>): Promise<void>;
  /** What the kernel holds, with the services in place of their relays' ports. */
  held(): readonly string[];
}

export function live(
  options: UserspaceOptions = {},
  kernel: FakeIptables = new FakeIptables({ family: "IPv4" }),
  world: World = new World(),
): Live {
  const sockets = new FakeSockets();
  const clock = new VirtualClock();
  const problems: string[] = [];
  const onProblem = (problem: string) => void problems.push(problem);
  const backend = createUserspaceBackend(kernel, { open: sockets.open, clock, onProblem, ...options });
  return {
    world,
    kernel,
    faults: kernel.faults,
    sockets,
    clock,
    problems,
    backend,
    async change(steps) {
      const change = world.change(steps);
      if (change !== undefined) await backend.apply(world.plan(), change);
    },
    held: () => heldBy(kernel.ruleSet(), sockets),
  };
}

/**
 * Every rule of our chains and of those that lead there, in the order of its chain; across groups the order is
 * anybody's.
 */
function heldBy(ruleSet: RuleSet, sockets: FakeSockets): readonly string[] {
  const lines: string[] = [];
  for (const [table, { chains }] of ruleSet) {
    for (const [chain, { rules }] of chains)
      lines.push(...rules.map((rule) => `${table} ${chain}${named(rule, sockets)}`));
  }
  return lines.sort();
}

function named(rule: Rule, sockets: FakeSockets): string {
  const port = (text: string) => sockets.listening.find((socket) => socket.includes(`:${text} `));
  const name = (text: string) => {
    const [socket = "", protocol = ""] = port(text)?.split(" ") ?? [];
    return port(text) === undefined ? text : `<${sockets.serviceAt(protocol, socket)}>`;
  };
  return ` ${renderRule(rule).replace(/4\d{4}/g, name)}`;
}

import type { ForwardingPlan, IPFamily, PlanChange } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
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
import { userspaceSemantics } from "../../src/index.ts";

/** What a slot of the world holds: a service, or none. */
export type Slot = WorkloadFields | undefined;

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

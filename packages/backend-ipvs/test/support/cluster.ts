import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type ForwardingPlan,
  type IPFamily,
  type PlanChange,
  Planner,
  type PlannerOptions,
} from "@fairlead/core";
import type { GoldenNode, RawObject } from "@fairlead/testkit";
import { ipvsSemantics } from "../../src/index.ts";

const NO_MEMORY = { get: () => undefined };

/** Raw objects to plans, as the agent does it. */
export class TestCluster {
  readonly #state = new ClusterState();
  readonly #planner: Planner;

  constructor(options: PlannerOptions) {
    this.#planner = new Planner(options);
  }

  plan(family: IPFamily): ForwardingPlan {
    return this.#planner.plan(family);
  }

  put(...objects: readonly RawObject[]): void {
    for (const object of objects) {
      if (object.kind === "Service") {
        const { object: service } = decodeService(object);
        if (service !== undefined) this.#state.upsertService(service);
        else this.remove(object);
      } else if (object.kind === "EndpointSlice") {
        const { object: slice } = decodeEndpointSlice(object);
        if (slice !== undefined) this.#state.upsertSlice(slice);
      }
    }
  }

  remove(...objects: readonly RawObject[]): void {
    for (const { kind, metadata } of objects) {
      const namespace = metadata.namespace ?? "default";
      if (kind === "Service") this.#state.deleteService(namespace, metadata.name);
      else if (kind === "EndpointSlice") this.#state.deleteSlice(namespace, metadata.name);
    }
  }

  setOptions(options: PlannerOptions): void {
    this.#planner.setOptions(options);
  }

  /** Plans what changed since the last call. */
  replan(): ReadonlyMap<IPFamily, PlanChange> {
    const steps = this.#planner.replan(this.#state, this.#state.takeDirty().services, NO_MEMORY);
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value.changes;
    }
  }
}

export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  const of = (values: readonly string[], family: IPFamily) =>
    values.filter((value) => value.includes(":") === (family === "IPv6"));
  const [ip4] = of(node.addresses, "IPv4");
  const [ip6] = of(node.addresses, "IPv6");
  return {
    nodeName: node.name,
    zone: node.zone,
    families: ["IPv4", "IPv6"],
    nodeIPs: { ...(ip4 && { IPv4: ip4 }), ...(ip6 && { IPv6: ip6 }) },
    detectors: {
      IPv4: { kind: "cidrs", cidrs: of(node.clusterCIDRs, "IPv4") },
      ...(ip6 && { IPv6: { kind: "cidrs", cidrs: of(node.clusterCIDRs, "IPv6") } }),
    },
    nodePortAddresses: {},
    masqueradeAll: false,
    semantics: ipvsSemantics,
    ...more,
  };
}

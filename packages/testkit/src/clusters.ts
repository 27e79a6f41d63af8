/** A cluster in memory: objects in, plan out. */

import { IP_FAMILIES, toEnd } from "@fairlead/base";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type EndpointFilter,
  type ForwardingPlan,
  type FrontendLookup,
  type IPFamily,
  type ModeSemantics,
  type Ownership,
  Planner,
  type PlannerOptions,
  type PlanStep,
  type ServiceKey,
} from "@fairlead/core";
import { NETWORKS, NODE_A, NODE_A_ZONE, SECOND_NODE_ADDRESS } from "./addresses.ts";
import { type AgentOptions, detectorOf, nodePortAddressesOf, nodePortHostsOf } from "./conformance/options.ts";
import type { RawObject } from "./objects.ts";

/** Raw objects to plans, as the agent does it, with the memory of owners. */
export class TestCluster {
  readonly #state = new ClusterState();
  readonly #planner: Planner;
  readonly #annotations: ReadonlySet<string>;
  readonly #memory = new Map<string, Ownership>();

  constructor(options: PlannerOptions) {
    this.#planner = new Planner(options);
    const { preserveDestination } = options.semantics;
    this.#annotations = new Set(preserveDestination === undefined ? [] : [preserveDestination]);
  }

  plan(family: IPFamily): ForwardingPlan {
    return this.#planner.plan(family);
  }

  lookup(family: IPFamily): FrontendLookup {
    return this.#planner.lookup(family);
  }

  /**
   * What cannot be used is taken out, as if it were deleted; kinds other than Service and EndpointSlice are passed
   * over.
   */
  put(...objects: readonly RawObject[]): void {
    for (const raw of objects) {
      if (raw.kind === "Service") {
        const { object } = decodeService(raw, undefined, { annotations: this.#annotations });
        if (object === undefined) this.remove(raw);
        else this.#state.upsertService(object);
      } else if (raw.kind === "EndpointSlice") {
        const { object } = decodeEndpointSlice(raw);
        if (object === undefined) this.remove(raw);
        else this.#state.upsertSlice(object);
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
  replan(): PlanStep {
    const memory = { get: (service: ServiceKey, family: IPFamily) => this.#memory.get(`${family} ${service}`) };
    const step = toEnd(this.#planner.replan(this.#state, this.#state.takeDirty().services, memory));
    for (const { service, family, ownership } of step.memory) {
      if (ownership === undefined) this.#memory.delete(`${family} ${service}`);
      else this.#memory.set(`${family} ${service}`, ownership);
    }
    return step;
  }
}

export interface ClusterOptions {
  readonly options: AgentOptions;
  readonly semantics: ModeSemantics;
  readonly filter: EndpointFilter;
}

/** A cluster that goes through a history of states, and its plans on node-a after each of them. */
export class PlannedCluster {
  readonly #cluster: TestCluster;
  #objects = new Map<string, RawObject>();

  constructor(options: ClusterOptions) {
    this.#cluster = new TestCluster(plannerOptions(options));
  }

  /** Takes in the differences between the last state and this one, which is complete. */
  advance(objects: readonly RawObject[]): PlanStep {
    const next = new Map(objects.map((object) => [objectKey(object), object]));
    for (const [key, object] of this.#objects) if (!next.has(key)) this.#cluster.remove(object);
    this.#cluster.put(...next.values());
    this.#objects = next;
    return this.#cluster.replan();
  }

  plan(family: IPFamily): ForwardingPlan {
    return this.#cluster.plan(family);
  }
}

const LOOPBACK = { IPv4: "127.0.0.1", IPv6: "::1" } as const;

function plannerOptions({ options, semantics, filter }: ClusterOptions): PlannerOptions {
  const each = <T>(of: (family: IPFamily) => T) => ({ IPv4: of("IPv4"), IPv6: of("IPv6") });
  return {
    nodeName: NODE_A.name,
    zone: NODE_A_ZONE,
    families: IP_FAMILIES,
    nodeIPs: NODE_A.addresses,
    detectors: each((family) => detectorOf(options, family)),
    nodePortAddresses: each((family) => nodePortAddressesOf(options, family)),
    nodePortHosts: each((family) => nodePortHostsOf(options, family)),
    nodeAddresses: each((family) => [LOOPBACK[family], NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]].sort()),
    serviceCIDRs: each((family) => [NETWORKS.services[family]]),
    masqueradeAll: options.masqueradeAll,
    ...(options.resetStaleTCP && { resetStaleTCP: true }),
    semantics,
    filter,
  };
}

function objectKey({ kind, metadata: { namespace = "", name } }: RawObject): string {
  return `${kind} ${namespace}/${name}`;
}

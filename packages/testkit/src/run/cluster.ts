import { IP_FAMILIES } from "@fairlead/base";
import type { EndpointFilter, ForwardingPlan, IPFamily, ModeSemantics, PlannerOptions, PlanStep } from "@fairlead/core";
import { NODE_A, NODE_A_ZONE, SECOND_NODE_ADDRESS } from "../addresses/hosts.ts";
import { NETWORKS } from "../addresses/networks.ts";
import { type AgentOptions, detectorOf, nodePortAddressesOf, nodePortHostsOf } from "../conformance/options.ts";
import type { RawObject } from "../objects/raw.ts";
import { TestCluster } from "./test-cluster.ts";

const LOOPBACK = { IPv4: "127.0.0.1", IPv6: "::1" } as const;
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

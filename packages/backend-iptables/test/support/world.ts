import type { ForwardingPlan, PlanChange, PlanEndpoint, PlannerOptions, ServicePortGroup } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import { type GoldenNode, goldenNode, goldenPlannerOptions } from "@fairlead/testkit";
import { traceSlots, World } from "@fairlead/testkit/histories";
import type { Outcome } from "@fairlead/trace";
import { iptablesSemantics } from "../../src/index.ts";

export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  return goldenPlannerOptions(node, iptablesSemantics, more);
}

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World(plannerOptions(goldenNode(false), more));
}

export class HandMadePlan implements ForwardingPlan {
  readonly family = "IPv4";
  readonly groups = new Map<string, ServicePortGroup>();
  readonly node: ForwardingPlan["node"] = {
    detector: { kind: "cidrs", cidrs: ["10.144.0.0/12"] },
    nodePortAddresses: { kind: "all" },
  };
  readonly healthChecks = new Map();
  readonly foreignClusterIPs = new Set<string>();
  endpointCount = 0;

  put(after: ServicePortGroup): PlanChange {
    const before = this.groups.get(after.id);
    this.groups.set(after.id, after);
    this.endpointCount += after.endpointCount - (before?.endpointCount ?? 0);
    return {
      family: "IPv4",
      groups: new Map([[after.id, { ...(before && { before }), after }]]),
      healthChecks: new Map(),
      foreignClusterIPs: { added: [], removed: [] },
    };
  }
}

export function group(i: number, endpoints: number): ServicePortGroup {
  const service = `team-${i % 100}/service-${i}` as const;
  const cluster = Array.from({ length: endpoints }, (_, e): PlanEndpoint => {
    const n = i * 10 + e;
    return { address: `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`, port: 8080, local: false };
  });
  const pod = { verdict: "proxy", set: "cluster", masquerade: false } as const;
  const other = { verdict: "proxy", set: "cluster", masquerade: true } as const;
  return {
    id: `${service}:http/tcp`,
    name: `${service}:http`,
    service,
    family: "IPv4",
    protocol: "TCP",
    cluster,
    local: [],
    serving: cluster,
    endpointCount: endpoints,
    frontends: [
      {
        kind: "cluster-ip",
        reach: "internal",
        at: "address",
        address: `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
        port: 80,
        policy: "Cluster",
        treatments: { pod, node: other, outside: other },
      },
    ],
    annotations: {},
  };
}

/** Where packets to every frontend that a slot can have end, by a name for the packet. */
export function whereabouts(ruleSet: RuleSet, slots: readonly number[]): ReadonlyMap<string, string> {
  const traced = [...traceSlots(ruleSet, slots)];
  return new Map(traced.map(([packet, outcomes]) => [packet, outcomes.map(endOf).sort().join(" | ")]));
}

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Refused or not served by anybody: which of them does not matter between two states. */
const NOWHERE: readonly (string | undefined)[] = [UNSERVED, "drop", "reject"];

/**
 * Whether a packet's end is right between two states: as in one of them, or refused where one of them leads it nowhere
 * (nat has let go of an address, and the rule of filter that drops some of its clients goes after that). A refused
 * share of the connections may be dropped as well: nat lets it go by.
 */
export function isEndBetween(end: string, before: string | undefined, after: string | undefined): boolean {
  if (dropped(end) === dropped(before) || dropped(end) === dropped(after)) return true;
  return (end === "drop" || end === "reject") && (NOWHERE.includes(before) || NOWHERE.includes(after));
}

function dropped(end: string | undefined): string | undefined {
  return end?.replace(/\breject$/, "drop");
}

function endOf({ verdict, destination, masqueraded, probability, translated }: Outcome): string {
  if (verdict !== "accept") return verdict;
  if (!translated) return UNSERVED;
  const end = `${destination.address}:${destination.port}`;
  return `${end}${masqueraded ? " as the node" : ""} ${probability.toFixed(4)}`;
}

import { familyOf } from "@fairlead/base";
import type { ForwardingPlan, PlanChange, PlanEndpoint, PlannerOptions, ServicePortGroup } from "@fairlead/core";
import { type GoldenNode, goldenNode, goldenPlannerOptions, ipvsEnvironment } from "@fairlead/testkit";
import { traceSlots, World } from "@fairlead/testkit/histories";
import type { Environment, Outcome } from "@fairlead/trace";
import { DEVICE, ipvsSemantics } from "../../src/index.ts";
import type { FakeNode } from "./fake-node.ts";

export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  return goldenPlannerOptions(node, ipvsSemantics, more);
}

/** The options of a node with some addresses of its own. */
export function worldOptions(nodeAddresses: readonly string[] = ["10.201.0.10", "127.0.0.1"]): PlannerOptions {
  return plannerOptions(goldenNode(false), { nodeAddresses: { IPv4: nodeAddresses } });
}

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World({ ...worldOptions(), ...more });
}

type Ends = ReadonlyMap<string, ReadonlySet<string>>;

/** Where packets to every frontend that a slot can have may end, by a name for the packet. */
export function whereabouts(node: FakeNode, slots: readonly number[]): Ends {
  const traced = [...traceSlots(node.rules.IPv4.ruleSet(), slots, environmentOf(node))];
  return new Map(traced.map(([packet, outcomes]) => [packet, new Set(outcomes.map(endOf))]));
}

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Nothing answers: the virtual server is empty, or a rule refuses. */
const REFUSED = "refused";

/**
 * The packets that may end where they should neither before nor after: what both serve has to be served between them,
 * by somebody of whom one of them knows. A server can't be changed in one step, so its destinations may be of both.
 */
export function wrongEnds(now: Ends, before: Ends, after: Ends): string[] {
  return [...now].flatMap(([packet, ends]) => {
    const old = before.get(packet) ?? new Set();
    const wanted = after.get(packet) ?? new Set();
    const known = [...old, ...wanted];
    const refusals = isServed(old) && isServed(wanted) ? [] : [UNSERVED, REFUSED];
    // To be masqueraded is to be served, if without the client's address; not to be where it was asked for is not.
    const right = new Set([...known, ...known.map((end) => `${end} as the node`), ...refusals]);
    const wrong = [...ends].filter((end) => !right.has(end));
    if (wrong.length === 0) return [];
    return [`${packet}: ${wrong.join(", ")}; before: ${[...old].join(", ")}; wanted: ${[...wanted].join(", ")}`];
  });
}

/** Plans of one service, made by hand. */

const PROXY = { verdict: "proxy", set: "cluster", masquerade: true } as const;

export function clusterIPGroup(address: string, cluster: readonly PlanEndpoint[]): ServicePortGroup {
  return {
    ...{
      id: "default/web/tcp",
      name: "default/web",
      service: "default/web",
      family: familyOf(address),
      protocol: "TCP",
    },
    ...{ cluster, local: [], serving: cluster, endpointCount: cluster.length, annotations: {} },
    frontends: [
      {
        ...{ kind: "cluster-ip", reach: "internal", at: "address", address, port: 80, policy: "Cluster" },
        treatments: { pod: PROXY, node: PROXY, outside: PROXY },
      },
    ],
  };
}

export function planOf(group: ServicePortGroup): ForwardingPlan {
  return {
    ...{ family: group.family, groups: new Map([[group.id, group]]), endpointCount: group.endpointCount },
    node: { detector: { kind: "none" }, nodePortAddresses: { kind: "all" } },
    healthChecks: new Map(),
    foreignClusterIPs: new Set(),
  };
}

export function changeOf(before: ServicePortGroup, after: ServicePortGroup): PlanChange {
  const groups = new Map([[before.id, { before, after }]]);
  return { family: after.family, groups, healthChecks: new Map(), foreignClusterIPs: { added: [], removed: [] } };
}

function environmentOf({ servers, sets, links }: FakeNode): Environment {
  const addresses = links.device(DEVICE) ?? [];
  return ipvsEnvironment({ servers: servers.servers(), sets: sets.sets(), addresses });
}

function endOf({ verdict, destination, masqueraded, translated }: Outcome): string {
  if (verdict !== "accept") return REFUSED;
  if (!translated) return UNSERVED;
  return `${destination.address}:${destination.port}${masqueraded ? " as the node" : ""}`;
}

function isServed(ends: ReadonlySet<string>): boolean {
  return ends.size > 0 && !ends.has(UNSERVED) && !ends.has(REFUSED);
}

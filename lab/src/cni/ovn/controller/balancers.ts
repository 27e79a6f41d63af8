import { BlockList, isIPv6 } from "node:net";
import type { GroupChange, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import type { NbCommand } from "../topology.ts";

export interface BalancerOptions {
  /** Whose endpoints are OVN's own. */
  readonly podCIDRs: readonly string[];
  /** The logical switches that pods are on. */
  readonly switches: readonly string[];
}

/**
 * The commands that change OVN's load balancers with the services. One load balancer for each service port and family
 * that OVN owns: there are endpoints, and all of them are OVN's.
 */
export function balancerCommands(changes: Iterable<GroupChange>, options: BalancerOptions): readonly NbCommand[] {
  const own = blockList(options.podCIDRs);
  return [...changes].flatMap(({ before, after }) => {
    const group = after ?? before;
    if (group === undefined) return [];
    const name = `${group.family}/${group.id}`;
    const add = after === undefined || !isOwn(after, own) ? [] : addCommands(name, after, options.switches);
    return [["--if-exists", "lb-del", name], ...add];
  });
}

function addCommands(name: string, group: ServicePortGroup, switches: readonly string[]): readonly NbCommand[] {
  const { protocol, cluster, frontends } = group;
  const frontend = frontends.find(({ kind }) => kind === "cluster-ip");
  if (frontend?.address === undefined) return [];
  const backends = cluster.map(({ address, port }) => socket(address, port)).join(",");
  return [
    ["lb-add", name, socket(frontend.address, frontend.port), backends, protocol.toLowerCase()],
    ...switches.map((one) => ["ls-lb-add", one, name]),
  ];
}

function isOwn({ cluster }: ServicePortGroup, own: BlockList): boolean {
  return cluster.length > 0 && cluster.every((endpoint) => isIn(own, endpoint));
}

function isIn(own: BlockList, { address }: PlanEndpoint): boolean {
  return own.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", length = ""] = cidr.split("/");
    list.addSubnet(address, Number(length), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

function socket(address: string, port: number): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

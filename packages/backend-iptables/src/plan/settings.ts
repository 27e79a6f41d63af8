/** Settings that rules depend on: of the configuration and of the kernel. */

import { isLoopback } from "@fairlead/base";
import type { IPFamily, LocalTrafficDetector, NodePlan } from "@fairlead/core";

/** What the operator chose for this mode, as the backend is made with it. */
export interface IptablesSettings {
  readonly family: IPFamily;
  /** Bit of the packet mark that asks for masquerading, 0…31 (KubeProxyConfiguration iptables.masqueradeBit). */
  readonly masqueradeBit: number;
  /** Node ports answer on 127.0.0.1 too (iptables.localhostNodePorts); only IPv4 can. */
  readonly localhostNodePorts: boolean;
  /** net.netfilter.nf_conntrack_tcp_be_liberal is set: packets in state INVALID are let through. */
  readonly tcpBeLiberal: boolean;
}

/** Everything that rendering a group or the frame depends on, besides the group itself. */
export interface RenderContext {
  readonly family: IPFamily;
  readonly mark: number;
  readonly tcpBeLiberal: boolean;
  readonly node: NodePlan;
  /** Node ports are served on loopback addresses. */
  readonly localhost: boolean;
  /** More than 1,000 endpoints: the comments of and to endpoint chains are left out. */
  readonly large: boolean;
  /** nfacct objects that exist. */
  readonly counters: ReadonlySet<string>;
  readonly lacking: ReadonlySet<OptionalPart>;
}

/** A match that rules do without where the kernel or the tools have it not. */
export type OptionalPart = "nfacct" | "recent" | "statistic" | "sctp";

/** What of the kernel decides how rules are rendered. */
export interface KernelParts {
  /** nfacct objects that exist. */
  readonly counters: ReadonlySet<string>;
  readonly lacking: ReadonlySet<OptionalPart>;
}

/** Endpoints of a family, counted over its service ports, up to which every rule has its comment. */
const LARGE_CLUSTER_ENDPOINTS = 1000;

export function renderContext(
  settings: IptablesSettings,
  plan: { readonly node: NodePlan; readonly endpointCount: number },
  { counters, lacking }: KernelParts,
): RenderContext {
  return {
    family: settings.family,
    mark: 2 ** settings.masqueradeBit,
    tcpBeLiberal: settings.tcpBeLiberal,
    node: plan.node,
    localhost: servesLocalhost(settings, plan.node),
    large: plan.endpointCount > LARGE_CLUSTER_ENDPOINTS,
    counters: lacking.has("nfacct") ? NO_COUNTERS : counters,
    lacking,
  };
}

const NO_COUNTERS: ReadonlySet<string> = new Set();

/** Whether two contexts render the same group and frame alike, the addresses of node ports aside. */
export function rendersAlike(a: RenderContext, b: RenderContext): boolean {
  return (
    a.large === b.large &&
    a.localhost === b.localhost &&
    a.node.resetStaleTCP === b.node.resetStaleTCP &&
    sameDetector(a.node.detector, b.node.detector)
  );
}

/** A kernel setting that the rules rely on; the backend's user sets it. */
export interface RequiredSysctl {
  /** With dots, as sysctl prints it: `net.ipv4.conf.all.route_localnet`. */
  readonly name: string;
  /** What it must be set to, as text. */
  readonly value: string;
  /** Why, for the log. */
  readonly reason: string;
}

/** The sysctls that must be set before node ports can answer on 127.0.0.1. */
export function requiredSysctls(
  settings: Pick<IptablesSettings, "family" | "localhostNodePorts">,
  node: NodePlan,
): readonly RequiredSysctl[] {
  if (!servesLocalhost(settings, node)) return [];
  const reason = "node ports on 127.0.0.1 (iptables.localhostNodePorts)";
  return [{ name: "net.ipv4.conf.all.route_localnet", value: "1", reason }];
}

/** Rules that the plan needs, by table. */
export interface Totals {
  filter: number;
  nat: number;
}

/** Node ports on loopback: IPv4, wanted, and among the node-port addresses. */
function servesLocalhost(settings: Pick<IptablesSettings, "family" | "localhostNodePorts">, node: NodePlan): boolean {
  if (settings.family !== "IPv4" || !settings.localhostNodePorts) return false;
  return node.nodePortAddresses.kind === "all" || node.nodePortAddresses.addresses.some(isLoopback);
}

function sameDetector(a: LocalTrafficDetector, b: LocalTrafficDetector): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

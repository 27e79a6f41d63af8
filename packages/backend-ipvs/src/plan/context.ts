import type { IPFamily, LocalTrafficDetector, NodePlan } from "@fairlead/core";
import type { Scheduler } from "./schedulers.ts";

/** What the operator chose for this mode, as the backend is made with it. */
export interface IpvsSettings {
  readonly family: IPFamily;
  /** Bit of the packet mark that asks for masquerading, 0…31 (KubeProxyConfiguration iptables.masqueradeBit). */
  readonly masqueradeBit: number;
  /** ipvs.scheduler */
  readonly scheduler: Scheduler;
}

/** Everything that the kernel objects of a group, or the frame around them, depend on alongside the groups. */
export interface PlanContext {
  readonly family: IPFamily;
  readonly mark: number;
  /** Traffic to ClusterIPs is masqueraded from every sender. */
  readonly masqueradeAll: boolean;
  readonly scheduler: Scheduler;
  /** Schedulers that this kernel has not: services that ask for them get the default. */
  readonly lacking: ReadonlySet<Scheduler>;
  readonly detector: LocalTrafficDetector;
  /** Where virtual servers of node ports stand. */
  readonly nodePortAddresses: readonly string[];
  /** Addresses that stand on other devices, and are not put on the service device again. */
  readonly nodeAddresses: ReadonlySet<string>;
  /** A TCP destination whose endpoint is gone goes at once, with its connections. */
  readonly resetStaleTCP: boolean;
}

export function planContext(settings: IpvsSettings, node: NodePlan, lacking: ReadonlySet<Scheduler>): PlanContext {
  return {
    family: settings.family,
    mark: 2 ** settings.masqueradeBit,
    masqueradeAll: node.masqueradeAll ?? false,
    scheduler: settings.scheduler,
    lacking,
    detector: node.detector,
    nodePortAddresses: nodePortAddresses(node),
    nodeAddresses: new Set(node.nodeAddresses),
    resetStaleTCP: node.resetStaleTCP ?? false,
  };
}

/** Never loopback, where packets to virtual servers do not come by, and never link-local IPv6 (upstream does alike). */
function nodePortAddresses({ nodePortAddresses: chosen, nodeAddresses = [] }: NodePlan): readonly string[] {
  const addresses = chosen.kind === "all" ? nodeAddresses : chosen.addresses;
  return addresses.filter((address) => !LOOPBACK.test(address) && !LINK_LOCAL.test(address));
}

const LOOPBACK = /^(?:127\.|::1$)/;

/** fe80::/10 */
const LINK_LOCAL = /^fe[89ab]/i;

/** Whether groups stand for the same kernel objects in both. */
export function rendersGroupsAlike(a: PlanContext, b: PlanContext): boolean {
  if (a.resetStaleTCP !== b.resetStaleTCP) return false;
  return sameList(a.nodePortAddresses, b.nodePortAddresses) && sameList([...a.nodeAddresses], [...b.nodeAddresses]);
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}

/** What groups are planned from: options, schedulers, names and the service device. */

import type { IPFamily, LocalTrafficDetector, NodePlan, ServicePortGroup } from "@fairlead/core";
import type { LinkCommand, VirtualServer } from "@fairlead/netfilter";

/** What the operator chose for this mode, as the backend is made with it. */
export interface IpvsSettings {
  readonly family: IPFamily;
  /** Bit of the packet mark that asks for masquerading, 0…31 (KubeProxyConfiguration iptables.masqueradeBit). */
  readonly masqueradeBit: number;
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
  /** Addresses of other nodes: on the service device they would cut this node off from those, all ports of them. */
  readonly otherNodes: ReadonlySet<string>;
  /** A TCP destination whose endpoint is gone goes at once, with its connections. */
  readonly resetStaleTCP: boolean;
}

/** All of it that follows from the settings and the node's part of a plan. */
export function nodeContext(settings: IpvsSettings, node: NodePlan): Omit<PlanContext, "lacking"> {
  return {
    family: settings.family,
    mark: 2 ** settings.masqueradeBit,
    masqueradeAll: node.masqueradeAll ?? false,
    scheduler: settings.scheduler,
    detector: node.detector,
    nodePortAddresses: nodePortAddresses(node),
    nodeAddresses: new Set(node.nodeAddresses),
    otherNodes: new Set(node.otherNodes),
    resetStaleTCP: node.resetStaleTCP ?? false,
  };
}

/** Whether groups stand for the same kernel objects in both. */
export function rendersGroupsAlike(a: PlanContext, b: PlanContext): boolean {
  if (a.resetStaleTCP !== b.resetStaleTCP) return false;
  return (
    sameList(a.nodePortAddresses, b.nodePortAddresses) &&
    sameSet(a.nodeAddresses, b.nodeAddresses) &&
    sameSet(a.otherNodes, b.otherNodes)
  );
}

/** The schedulers that a service may ask for, with what each needs alongside its name. */
const FLAGS = {
  rr: [],
  wrr: [],
  lc: [],
  wlc: [],
  lblc: [],
  lblcr: [],
  sh: [],
  dh: [],
  sed: [],
  nq: [],
  // The source's port counts too, or all connections of a client would go one way.
  mh: ["mh-port"],
  fo: [],
  ovf: [],
  twos: [],
} as const satisfies Record<string, readonly string[]>;

/** A scheduler of ip_vs by its kernel name, such as `rr` or `sh`. */
export type Scheduler = keyof typeof FLAGS;

/** Every scheduler that this mode accepts. */
export const SCHEDULERS: readonly Scheduler[] = Object.keys(FLAGS).filter(isScheduler);

/** Whether ip_vs has a scheduler of this name that this mode accepts. */
export function isScheduler(name: string): name is Scheduler {
  return Object.hasOwn(FLAGS, name);
}

export interface SchedulerOptions extends Pick<VirtualServer, "flags"> {
  readonly scheduler: Scheduler;
}

export function schedulerOptions(scheduler: Scheduler): SchedulerOptions {
  return { scheduler, flags: FLAGS[scheduler] };
}

/** The annotation by which a Service asks for a scheduler of its own. */
export const SCHEDULER_ANNOTATION = "fairlead.dev/ipvs-scheduler";

/** Hashes the client's address without its port: all connections of a client go one way (ip_vs_mh.c). */
const BY_SOURCE: SchedulerOptions = { scheduler: "mh", flags: [] };

/**
 * The scheduler that the service asks for; undefined where it asks for none, or for one that does not exist. What it
 * asks for by name comes before a balance that every mode knows.
 *
 * @param standard that of services that ask for none
 */
export function askedScheduler(group: ServicePortGroup, standard: Scheduler): SchedulerOptions | undefined {
  const asked = schedulerByName(group) ?? (group.balance === "source-hash" ? BY_SOURCE : undefined);
  const heeding = group.weights && HEEDING[asked?.scheduler ?? standard];
  return heeding === undefined ? asked : schedulerOptions(heeding);
}

function schedulerByName({ annotations }: ServicePortGroup): SchedulerOptions | undefined {
  const asked = annotations[SCHEDULER_ANNOTATION];
  return asked !== undefined && isScheduler(asked) ? schedulerOptions(asked) : undefined;
}

/** What is used in place of schedulers that heed no weights, where endpoints do not weigh alike. */
const HEEDING: Readonly<Partial<Record<Scheduler, Scheduler>>> = { rr: "wrr", lc: "wlc" };

export function schedulerProblem({ service, annotations }: ServicePortGroup): string | undefined {
  const asked = annotations[SCHEDULER_ANNOTATION];
  if (asked === undefined || isScheduler(asked)) return undefined;
  const wanted = `must be one of ${SCHEDULERS.join(", ")}`;
  return `Service ${service}: annotation ${SCHEDULER_ANNOTATION} is ${JSON.stringify(asked)}; it ${wanted}; using the default`;
}

/** Names that others rely on: operators, Kube-OVN and kube-proxy's own cleanup. They are kube-proxy's. */

/** The dummy device that holds the services' addresses, so that packets to them count as packets to this node. */
export const DEVICE = "kube-ipvs0";

/** The device stays down, as upstream's does: its addresses count as the node's own all the same. */
export const CREATE_DEVICE: LinkCommand = { kind: "add-device", device: DEVICE };
export const DELETE_DEVICE: LinkCommand = { kind: "delete-device", device: DEVICE };

export function addressCommand(kind: "add-address" | "delete-address", address: string): LinkCommand {
  return { kind, device: DEVICE, address };
}

export const SERVICES = "KUBE-SERVICES";
export const POSTROUTING = "KUBE-POSTROUTING";
export const MARK_MASQ = "KUBE-MARK-MASQ";
/** In nat and in filter, for two purposes. */
export const NODE_PORT = "KUBE-NODE-PORT";
export const LOAD_BALANCER = "KUBE-LOAD-BALANCER";
export const FORWARD = "KUBE-FORWARD";
export const PROXY_FIREWALL = "KUBE-PROXY-FIREWALL";
export const SOURCE_RANGES = "KUBE-SOURCE-RANGES-FIREWALL";
/** The chain of table filter that refuses packets to service addresses and ports which have no virtual server. */
export const IPVS_FILTER = "KUBE-IPVS-FILTER";
export const IPVS_OUT_FILTER = "KUBE-IPVS-OUT-FILTER";

/** Never loopback, where packets to virtual servers do not come by, and never link-local IPv6 (upstream does alike). */
function nodePortAddresses({ nodePortAddresses: chosen, nodeAddresses = [] }: NodePlan): readonly string[] {
  const addresses = chosen.kind === "all" ? nodeAddresses : chosen.addresses;
  return addresses.filter((address) => !LOOPBACK.test(address) && !LINK_LOCAL.test(address));
}

const LOOPBACK = /^(?:127\.|::1$)/;

/** fe80::/10 */
const LINK_LOCAL = /^fe[89ab]/i;

/** In the same order; of one node it is the same set. */
function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a === b || sameList([...a], [...b]);
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}

/** What another mode treats differently, and why. */

import { familyOf, IP_FAMILIES, isLoopback, socketText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import {
  FRONTEND_KINDS,
  type Frontend,
  type IPFamily,
  type ModeFacts,
  type NodePortAddresses,
  type ServiceKey,
  type ServicePortGroup,
  type SourceClass,
  type Treatment,
} from "@fairlead/core";
import { factsOf } from "./modes/index.ts";
import type { PlannedNode } from "./node-plan.ts";

/**
 * What changes for clients of a node when its proxy goes on in another mode, and why. Both sides are plans of the same
 * objects.
 */
export function modeChange(change: ModeChange): readonly ModeFinding[] {
  return [
    ...kernelFindings(change),
    ...treatmentFindings(change),
    ...nodePortFindings(change),
    ...localhostFindings(change),
    ...schedulerFindings(change),
    ...affinityFindings(change),
    ...unusedFindings(change),
  ];
}

export interface ModeFinding {
  readonly topic: string;
  /** `blocks`: the node cannot run the mode. */
  readonly state: "fits" | "differs" | "blocks" | "unknown";
  readonly found: string;
  /** What can be done about it. */
  readonly advice?: string;
  /** The services that it is about, sorted; absent: it is not about single ones. */
  readonly services?: readonly ServiceKey[];
}

export interface ModeSide {
  readonly planned: PlannedNode;
  readonly config: AgentConfig;
}

/** What is known of the node beyond its objects; what is absent is not known. */
export interface SeenNode {
  /** `6.1.0-44-amd64` */
  readonly kernel?: string;
  /** All addresses of its interfaces. */
  readonly addresses?: readonly string[];
  /** Packets to node ports on loopback addresses that the rules have accepted (a counter of iptables mode). */
  readonly localhostPackets?: number;
  /** Packets that the rules have dropped as invalid (a counter of iptables mode). */
  readonly invalidPackets?: number;
}

/** A node and its two modes: `before` serves now. */
export interface ModeChange {
  readonly before: ModeSide;
  readonly after: ModeSide;
  readonly seen: SeenNode;
}

/** Names a scheduler of IPVS for one Service (docs/ipvs.md). */
const SCHEDULER_ANNOTATION = "fairlead.dev/ipvs-scheduler";

/**
 * What comes closest to a scheduler where each connection goes to an endpoint by chance. Weights are all the same: the
 * proxy gives none.
 */
const EQUALS: Readonly<Record<string, string>> = {
  rr: "by chance, with the same shares",
  wrr: "by chance, with the same shares",
  sh: "the annotation fairlead.dev/balance: source-hash on the Service",
  mh: "the annotation fairlead.dev/balance: source-hash on the Service",
};

/** Services whose connections are spread in another way. */
function schedulerFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  if (!hasVirtualServers(before) || hasVirtualServers(after)) return [];
  // With a balance that is named it is spread so in each of the modes that know it.
  const unnamed = groupsOf(before).filter(({ balance }) => balance === undefined);
  const byScheduler = Map.groupBy(
    unnamed,
    ({ annotations }) => annotations[SCHEDULER_ANNOTATION] ?? before.config.ipvs.scheduler,
  );
  return [...byScheduler].map(([scheduler, groups]) => {
    const services = sortedServices(groups.map(({ service }) => service));
    const count = `scheduler ${scheduler} of ${services.length} ${services.length === 1 ? "service" : "services"}`;
    const equal = EQUALS[scheduler];
    if (scheduler === "rr" || scheduler === "wrr") return { topic: TOPIC, state: "fits", found: `${count}: ${equal}` };
    const found = equal === undefined ? `${count} has no equal: connections go to endpoints by chance` : count;
    const advice =
      equal === undefined ? "keep ipvs mode for as long as you need it: it stays in Fairlead" : `its equal is ${equal}`;
    return { topic: TOPIC, state: "differs", found, advice, services };
  });
}

const TOPIC = "balancing";

/** Services with session affinity: which endpoint a client had is known to the mode that it had it in. */
function affinityFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  const services = sortedServices(
    groupsOf(before)
      .filter(({ affinitySeconds }) => affinitySeconds !== undefined)
      .map(({ service }) => service),
  );
  if (services.length === 0 || before.planned.mode === after.planned.mode) return [];
  const count = `${services.length} ${services.length === 1 ? "service has" : "services have"} session affinity`;
  const found = `${count}: it is kept, but a mode does not read what another one remembers, so the next connection of a client may go to another endpoint once; open connections stay`;
  return [{ topic: "affinity", state: "differs", found, services }];
}

function groupsOf({ planned }: ModeSide): readonly ServicePortGroup[] {
  return IP_FAMILIES.flatMap((family) => [...planned.planner.plan(family).groups.values()]);
}

/** What is sent to addresses of services that no service port has. */
function unusedFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  if (!hasTables(after) || hasTables(before)) return [];
  const was = hasVirtualServers(before)
    ? "programs of the node that listen on all addresses answer at every ClusterIP, and so does ping"
    : "packets leave the node by its default route";
  const unallocated =
    factsOfSide(after).needs.serviceCIDRs === true ? "; a ClusterIP that no service has is dropped" : "";
  const found = `ports that no service has at a ClusterIP: ${was} now, and are then refused${unallocated}`;
  return [{ topic: "ClusterIPs", state: "differs", found }];
}

/** Services by their names, each once. */
function sortedServices(services: Iterable<ServiceKey>): readonly ServiceKey[] {
  return [...new Set(services)].sort();
}

/** The oldest kernel for nftables mode (upstream: pkg/proxy/nftables, README of KEP-3866). */
const NFTABLES_KERNEL = [5, 13] as const;

/**
 * The first kernel that does not take packets out of a TCP connection's window for invalid
 * (kubernetes.io/docs/reference/networking/virtual-ips, "Conntrack bug workarounds").
 */
const INVALID_FIXED = [6, 1] as const;

/** Whether the node's kernel can do it, and a bug of old ones that only iptables mode works around. */
function kernelFindings({ before, after, seen }: ModeChange): readonly ModeFinding[] {
  const topic = "kernel";
  const { kernel } = seen;
  if (!hasTables(after) || kernel === undefined) return [];
  if (isOlder(kernel, NFTABLES_KERNEL)) {
    const advice = "nftables mode needs Linux 5.13; keep this node's mode, or update its kernel first";
    return [{ topic, state: "blocks", found: `Linux ${kernel}`, advice }];
  }
  const dropsInvalid = factsOfSide(before).packetCounters.invalidDropped !== undefined;
  const worksAround = dropsInvalid && !before.config.conntrack.tcpBeLiberal;
  if (!worksAround || !isOlder(kernel, INVALID_FIXED)) return [{ topic, state: "fits", found: `Linux ${kernel}` }];
  return [invalidFinding(kernel, seen.invalidPackets)];
}

function invalidFinding(kernel: string, packets: number | undefined): ModeFinding {
  const topic = "kernel";
  const counted =
    packets === undefined
      ? "kubeproxy_iptables_ct_state_invalid_dropped_packets_total counts such packets"
      : `${packets} such packets were dropped so far`;
  const found = `Linux ${kernel}: before 6.1 long connections may be reset; iptables mode drops the packets that cause it, and nftables mode does not; ${counted}`;
  if (packets === 0) return { topic, state: "fits", found };
  return { topic, state: "differs", found, advice: "set conntrack.tcpBeLiberal: true, which avoids it in every mode" };
}

function isOlder(release: string, [major, minor]: readonly [number, number]): boolean {
  const [, first, second] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  if (first === undefined || second === undefined) return false;
  return Number(first) < major || (Number(first) === major && Number(second) < minor);
}

/** Node ports that the node itself reaches at 127.0.0.1 (::1) in one of the modes. */
function localhostFindings({ before, after, seen }: ModeChange): readonly ModeFinding[] {
  const lost = IP_FAMILIES.filter((family) => onLoopback(family, before) && !onLoopback(family, after));
  const services = sortedServices(lost.flatMap((family) => nodePortServices(family, before)));
  if (services.length === 0) return [];
  const { localhostPackets } = seen;
  const found = `${services.length} ${services.length === 1 ? "service is" : "services are"} served at 127.0.0.1:NODEPORT for programs of the node, and then not; ${usedText(localhostPackets)}`;
  if (localhostPackets === 0) return [{ topic: LOCALHOST_TOPIC, state: "fits", found, services }];
  return [{ topic: LOCALHOST_TOPIC, state: "differs", found, ...(hasTables(after) && { advice: ADVICE }), services }];
}

const LOCALHOST_TOPIC = "node ports on localhost";

const ADVICE =
  "use the node's own address, or set featureGates: {KubeProxyNFTablesLocalhostNodePorts: true} and nodePortAddresses: " +
  "[primary, localhost], which relays TCP there";

function usedText(packets: number | undefined): string {
  if (packets === undefined) {
    return "whether one uses it is not known: kubeproxy_iptables_localhost_nodeports_accepted_packets_total counts it on each node";
  }
  return packets === 0
    ? "no packet was counted there since the rules exist"
    : `${packets} packets were counted there: it is used`;
}

/** Whether a program of the node that asks a loopback address of it for a node port is answered. */
function onLoopback(family: IPFamily, side: ModeSide): boolean {
  const { config, planned } = side;
  const said = planned.loopbackNodePorts(family);
  if (said !== undefined) return said === "relayed";
  // Only iptables mode, and only with IPv4, translates what is sent to loopback (route_localnet).
  if (family !== "IPv4" || factsOfSide(side).packetCounters.localhostAccepted === undefined) return false;
  const { nodePortAddresses } = planned.planner.plan(family).node;
  const isSelected = nodePortAddresses.kind === "all" || nodePortAddresses.addresses.some(isLoopback);
  return config.iptables.localhostNodePorts && isSelected;
}

/** Node ports that are no longer, or only then, served on some of the node's addresses; loopback apart. */
function nodePortFindings(change: ModeChange): readonly ModeFinding[] {
  return IP_FAMILIES.flatMap((family) => familyFindings(family, change));
}

function familyFindings(family: IPFamily, { before, after, seen }: ModeChange): readonly ModeFinding[] {
  const services = nodePortServices(family, before);
  const [was, is] = [servedAt(family, before), servedAt(family, after)];
  if (services.length === 0 || JSON.stringify(was) === JSON.stringify(is)) return [];
  const own = seen.addresses?.filter((address) => familyOf(address) === family && !isLocal(address));
  const topic = `node ports, ${family}`;
  const where = own === undefined ? undefined : own.filter((address) => lets(was, address) && !lets(is, address));
  const ports = `node ports of ${services.length} ${services.length === 1 ? "service" : "services"}`;
  if (where?.length === 0 && own?.every((address) => lets(was, address) || !lets(is, address))) {
    return [{ topic, state: "fits", found: `served at ${placesText(is)}, which is every address of the node` }];
  }
  const lost = where === undefined ? "" : `; no longer at ${where.join(", ")}`;
  const found = `${ports} are served at ${placesText(was)} now, and then at ${placesText(is)}${where?.length === 0 ? "" : lost}`;
  const keep = isSet(after) ? {} : { advice: KEEP };
  return [{ topic, state: "differs", found, ...(hasTables(after) ? keep : {}), services }];
}

const KEEP = "to keep them set nodePortAddresses: [all], or the CIDRs whose addresses are to serve them";

function isSet({ config }: ModeSide): boolean {
  return config.provenance["nodePortAddresses"] !== undefined;
}

function nodePortServices(family: IPFamily, { planned }: ModeSide) {
  const groups = [...planned.planner.plan(family).groups.values()];
  const having = groups.filter(({ frontends }) =>
    frontends.some(({ kind }) => FRONTEND_KINDS[kind].at === "node-port"),
  );
  return sortedServices(having.map(({ service }) => service));
}

function servedAt(family: IPFamily, { planned }: ModeSide): NodePortAddresses {
  const { nodePortAddresses } = planned.planner.plan(family).node;
  if (nodePortAddresses.kind === "all") return nodePortAddresses;
  return { kind: "list", addresses: nodePortAddresses.addresses.filter((address) => !isLocal(address)) };
}

function lets(at: NodePortAddresses, address: string): boolean {
  return at.kind === "all" || at.addresses.includes(address);
}

function placesText(at: NodePortAddresses): string {
  if (at.kind === "all") return "all addresses of the node";
  return at.addresses.length === 0 ? "none of its addresses" : at.addresses.join(", ");
}

function isLocal(address: string): boolean {
  return isLoopback(address) || address.startsWith("fe80:");
}

function factsOfSide({ planned }: ModeSide): ModeFacts {
  return factsOf(planned.mode);
}

function hasTables(side: ModeSide): boolean {
  return factsOfSide(side).nftTables !== undefined;
}

/** Whether the kernel's virtual servers serve, which have schedulers, and addresses of the node for all services. */
function hasVirtualServers(side: ModeSide): boolean {
  return factsOfSide(side).objects.own?.kinds.includes("virtualServers") === true;
}

/** What becomes of one class of sources at one frontend, in both modes. */
interface Change {
  readonly service: ServiceKey;
  /** `load-balancer 203.0.113.10:80 (Local)` */
  readonly frontend: string;
  readonly from: SourceClass;
  readonly before: string;
  readonly after: string;
}

/** Clients that the two modes treat differently: policies and services without endpoints. One finding for each kind. */
function treatmentFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  const changes = IP_FAMILIES.flatMap((family) => changesIn(family, before, after));
  const kinds = Map.groupBy(changes, (change) => `${SENDERS[change.from]}: ${change.before} → ${change.after}`);
  if (kinds.size === 0) return [{ topic: "services", state: "fits", found: "every client reaches the same endpoints" }];
  return [...kinds].map(([kind, alike]) => {
    const more = alike.length === 1 ? "" : ` and ${alike.length - 1} more`;
    const found = `${kind}, at ${alike[0]?.frontend}${more}`;
    return {
      topic: "services",
      state: "differs",
      found,
      services: sortedServices(alike.map(({ service }) => service)),
    };
  });
}

const SENDERS = { pod: "pods of the node", node: "the node itself", outside: "clients outside" } as const;
const SOURCES = Object.keys(SENDERS) as readonly SourceClass[];

function changesIn(family: IPFamily, before: ModeSide, after: ModeSide): readonly Change[] {
  const now = after.planned.planner.plan(family).groups;
  return [...before.planned.planner.plan(family).groups.values()].flatMap((group) => {
    const other = now.get(group.id);
    if (other === undefined) return [];
    return group.frontends.flatMap((frontend) => {
      const same = other.frontends.find((one) => nameOf(one) === nameOf(frontend));
      return SOURCES.flatMap((from) => {
        const was = text(frontend.treatments[from], group);
        const is = same === undefined ? "not served" : text(same.treatments[from], other);
        return was === is ? [] : [{ service: group.service, frontend: nameOf(frontend), from, before: was, after: is }];
      });
    });
  });
}

function nameOf({ kind, address, port, policy }: Frontend): string {
  return `${kind} ${address === undefined ? port : socketText(address, port)} (${policy})`;
}

type Sets = Readonly<Record<"cluster" | "local", readonly unknown[]>>;

/** Endpoints by what they are, not how many: a set that is empty is none. */
function text(treatment: Treatment, sets: Sets): string {
  if (treatment.verdict !== "proxy") return VERDICTS[treatment.verdict];
  if (sets[treatment.set].length === 0) return "no answer";
  const endpoints = treatment.set === "cluster" ? "all endpoints" : "endpoints on the node";
  return treatment.masquerade ? `${endpoints}, masqueraded` : endpoints;
}

const VERDICTS = { reject: "refused", drop: "no answer", leave: "left to the other network" } as const;

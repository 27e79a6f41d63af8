import { containsCIDR, hostCIDR } from "@fairlead/base";

/** A device of a node, as far as its role is concerned. */
export interface Device {
  /** Unique in its network namespace. */
  readonly name: string;
  /** The kernel's number. */
  readonly index: number;
  /** `veth`, `bridge`, …; absent: a device of hardware, `lo` and the like. */
  readonly kind?: string;
  /** The number of the bridge or switch that it is a port of. */
  readonly master?: number;
  /** CIDRs that the routing table `main` has by it, a default route as 0.0.0.0/0 or ::/0. Absent: not known. */
  readonly routes?: readonly string[];
  /** Its own addresses. Absent: not known. */
  readonly addresses?: readonly string[];
}

/** What became of the devices of a node. */
export interface ChosenDevices {
  /** By name, with the kernel's number of each. */
  readonly devices: ReadonlyMap<string, number>;
  /** Those that are asked for and left out, and why. */
  readonly refused: ReadonlyMap<string, string>;
}

/** What else decides which devices are chosen. */
export interface DeviceFacts {
  /** Bridged packets pass through the rules of the IP families (br_netfilter). */
  readonly bridgeFilter: boolean;
  /** CIDRs of this cluster's pods, canonical: for `auto`. */
  readonly pods?: readonly string[];
  /** CIDRs of excluded networks, canonical. */
  readonly excluded?: readonly string[];
}

/**
 * The devices whose packets may bypass rules.
 *
 * @param wanted names, in which `*` stands for any characters and `?` for one; auto: devices of this cluster's pods,
 * and those by which other nodes are reached
 * @param all the devices of the node
 */
export function chooseDevices(
  wanted: readonly string[] | "auto",
  all: readonly Device[],
  facts: DeviceFacts,
): ChosenDevices {
  const isAsked = wanted === "auto" ? ofCluster(all, facts) : named(wanted);
  const devices = new Map<string, number>();
  const refused = new Map<string, string>();
  for (const device of all) {
    if (!isAsked(device) || device.name === "lo") continue;
    const why = whyNot(device, all, facts);
    if (why === undefined) devices.set(device.name, device.index);
    // auto names no particular device, so that there is nothing to report.
    else if (wanted !== "auto") refused.set(device.name, why);
  }
  return { devices, refused };
}

type IsAsked = (device: Device) => boolean;

function named(patterns: readonly string[]): IsAsked {
  const asked = patterns.map(patternOf);
  return ({ name }) => asked.some((pattern) => pattern.test(name));
}

function patternOf(text: string): RegExp {
  const literal = text.replace(/[\\^$.|+()[\]{}]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("*", ".*").replaceAll("?", ".")}$`);
}

/**
 * A pod's veth, by a route to an address of pods; a port of a bridge that has such an address itself; the uplink; a
 * vxlan device with routes to pods of other nodes.
 */
function ofCluster(all: readonly Device[], { pods = [] }: DeviceFacts): IsAsked {
  const isOfPods = isWithin(pods);
  return (device) => {
    const { kind, routes = [] } = device;
    if (isUplink(device)) return true;
    if (kind === "vxlan") return routes.some(isOfPods);
    const owner = masterOf(device, all);
    if (owner?.kind === "bridge") return owner.addresses?.some((address) => isOfPods(hostCIDR(address))) ?? false;
    return kind === "veth" && routes.some((route) => /\/(?:32|128)$/.test(route) && isOfPods(route));
  };
}

function isUplink({ routes = [] }: Device): boolean {
  return routes.some((route) => route === "0.0.0.0/0" || route === "::/0");
}

function isWithin(cidrs: readonly string[]): (cidr: string) => boolean {
  return (cidr) => cidrs.some((one) => containsCIDR(one, cidr));
}

function masterOf({ master }: Device, all: readonly Device[]): Device | undefined {
  return master === undefined ? undefined : all.find(({ index }) => index === master);
}

/** Where another data plane or network has the packets, or where a look-up could only miss. */
function whyNot(device: Device, all: readonly Device[], { bridgeFilter, excluded = [] }: DeviceFacts) {
  const { name, kind } = device;
  if (kind === "bridge" && bridgeFilter)
    return "it is a bridge, and with br_netfilter its packets are translated before they get there; its ports can be named";
  const owner = masterOf(device, all);
  if (kind === "openvswitch" || owner?.kind === "openvswitch") return "it belongs to Open vSwitch";
  const has = (other: string) => all.some((one) => one.name === other);
  if (has("cilium_host") && /^(cilium_|lxc)/.test(name)) return "it belongs to Cilium";
  if (has("bpfin.cali") && name.startsWith("cali")) return "it belongs to Calico's eBPF data plane";
  return isOfExcluded(device, owner, excluded) ? "it belongs to an excluded network" : undefined;
}

/** The uplink carries packets of all networks. */
function isOfExcluded(device: Device, owner: Device | undefined, excluded: readonly string[]): boolean {
  if (excluded.length === 0 || isUplink(device)) return false;
  const isExcluded = isWithin(excluded);
  const addresses = [...(device.addresses ?? []), ...(owner?.addresses ?? [])].map(hostCIDR);
  return [...(device.routes ?? []), ...addresses].some(isExcluded);
}

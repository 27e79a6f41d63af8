import type { NetworkDevice } from "@fairlead/kernel";

export interface ChosenDevices {
  /** By name, with the kernel's number of each. */
  readonly devices: ReadonlyMap<string, number>;
  /** Those that are asked for and left out, and why. */
  readonly refused: ReadonlyMap<string, string>;
}

export interface DeviceFacts {
  /** Bridged packets pass through the rules of the IP families (br_netfilter). */
  readonly bridgeFilter: boolean;
}

/**
 * The devices whose packets may bypass rules.
 *
 * @param patterns names, in which `*` stands for any characters and `?` for one
 * @param all the devices of the node
 */
export function chooseDevices(
  patterns: readonly string[],
  all: readonly NetworkDevice[],
  facts: DeviceFacts,
): ChosenDevices {
  const asked = patterns.map(patternOf);
  const devices = new Map<string, number>();
  const refused = new Map<string, string>();
  for (const device of all) {
    if (!asked.some((pattern) => pattern.test(device.name)) || device.name === "lo") continue;
    const why = whyNot(device, all, facts);
    if (why === undefined) devices.set(device.name, device.index);
    else refused.set(device.name, why);
  }
  return { devices, refused };
}

function patternOf(text: string): RegExp {
  const literal = text.replace(/[\\^$.|+()[\]{}]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("*", ".*").replaceAll("?", ".")}$`);
}

/** Where another data plane takes the packets, or where a look-up could only miss. */
function whyNot(
  { name, kind, master }: NetworkDevice,
  all: readonly NetworkDevice[],
  { bridgeFilter }: DeviceFacts,
): string | undefined {
  if (kind === "bridge" && bridgeFilter)
    return "it is a bridge, and with br_netfilter its packets are translated before they get there; its ports can be named";
  const owner = master === undefined ? undefined : all.find(({ index }) => index === master);
  if (kind === "openvswitch" || owner?.kind === "openvswitch") return "it belongs to Open vSwitch";
  const has = (other: string) => all.some((device) => device.name === other);
  if (has("cilium_host") && /^(cilium_|lxc)/.test(name)) return "it belongs to Cilium";
  if (has("bpfin.cali") && name.startsWith("cali")) return "it belongs to Calico's eBPF data plane";
  return undefined;
}

import { type ChosenDevices, chooseDevices } from "@fairlead/backend-nftables";
import { hostCIDR, itemsOf, numberOf, stringOf, textAt, valueAt } from "@fairlead/base";
import { type AgentConfig, fastPathNetworks, whyNotAuto } from "@fairlead/config";
import type { NetworkDevice } from "@fairlead/kernel";

const BRIDGE_FILTERS = ["iptables", "ip6tables"].map((tool) => `/proc/sys/net/bridge/bridge-nf-call-${tool}`);
const ROUTES = [
  { flag: "-4", everywhere: "0.0.0.0/0" },
  { flag: "-6", everywhere: "::/0" },
] as const;

/** What a program prints; undefined: it is not there, or failed. */
type OutputOf = (program: string, ...args: readonly string[]) => Promise<string | undefined>;

/**
 * The devices that the agent of a node has on the fast path; undefined: it has none, they cannot be listed, or the
 * configuration does not say which (`whyNotAuto`).
 */
export async function fastPathDevices(
  config: Pick<AgentConfig, "nftables" | "clusterCIDRs" | "multiCNI">,
  outputOf: OutputOf,
): Promise<ChosenDevices | undefined> {
  const { fastPath } = config.nftables;
  if (fastPath === undefined || whyNotAuto(config) !== undefined) return undefined;
  const listed = await outputOf("ip", "-json", "-details", "address", "show");
  const routes = await routesByDevice(outputOf);
  // Busybox's ip knows no JSON.
  if (!listed?.startsWith("[") || routes === undefined) return undefined;
  const filters = await Promise.all(BRIDGE_FILTERS.map((path) => outputOf("cat", path)));
  const bridgeFilter = filters.some((value) => value !== undefined && value.trim() !== "0");
  return chooseDevices(fastPath.devices, devicesIn(listed, routes), { bridgeFilter, ...fastPathNetworks(config) });
}

/** As `ip -json -details address` lists them: a master by its name. */
function devicesIn(text: string, routes: ReadonlyMap<string, readonly string[]>): readonly NetworkDevice[] {
  const all = itemsOf(JSON.parse(text));
  const numbers = new Map(all.map((one) => [textAt(one, "ifname"), numberOf(valueAt(one, "ifindex"))]));
  return all.flatMap((one) => {
    const [name, index] = [textAt(one, "ifname"), numberOf(valueAt(one, "ifindex"))];
    if (name === undefined || index === undefined) return [];
    const kind = stringOf(valueAt(one, "linkinfo", "info_kind"));
    const master = numbers.get(textAt(one, "master"));
    const own = itemsOf(valueAt(one, "addr_info")).flatMap((address) => textAt(address, "local") ?? []);
    const role = { ...(kind !== undefined && { kind }), ...(master !== undefined && { master }) };
    return [{ name, index, ...role, routes: routes.get(name) ?? [], addresses: own }];
  });
}

/** CIDRs of the routing table `main`, by the names of the devices that they lead to. */
async function routesByDevice(outputOf: OutputOf): Promise<ReadonlyMap<string, readonly string[]> | undefined> {
  const found = new Map<string, readonly string[]>();
  for (const { flag, everywhere } of ROUTES) {
    const text = await outputOf("ip", "-json", flag, "route", "show");
    if (text === undefined) return undefined;
    for (const { device, cidr } of routesIn(text, everywhere)) found.set(device, [...(found.get(device) ?? []), cidr]);
  }
  return found;
}

/** A route by each of its next hops. */
function routesIn(text: string, everywhere: string): readonly { readonly device: string; readonly cidr: string }[] {
  return itemsOf(JSON.parse(text.trim() || "[]")).flatMap((route) => {
    const cidr = unicastCIDR(route, everywhere);
    const hops = [route, ...itemsOf(valueAt(route, "nexthops"))];
    return cidr === undefined
      ? []
      : hops.flatMap((hop) => textAt(hop, "dev") ?? []).map((device) => ({ device, cidr }));
  });
}

/** Undefined: it leads nowhere, as a blackhole. */
function unicastCIDR(route: unknown, everywhere: string): string | undefined {
  const destination = textAt(route, "dst");
  if (destination === undefined || (textAt(route, "type") ?? "unicast") !== "unicast") return undefined;
  if (destination === "default") return everywhere;
  return destination.includes("/") ? destination : hostCIDR(destination);
}

import { chooseDevices } from "@fairlead/backend-nftables";
import { itemsOf, numberOf, stringOf, textAt, valueAt } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { NetworkDevice } from "@fairlead/kernel";

const BRIDGE_FILTERS = ["iptables", "ip6tables"].map((tool) => `/proc/sys/net/bridge/bridge-nf-call-${tool}`);

/** What a program prints; undefined: it is not there, or failed. */
type OutputOf = (program: string, ...args: readonly string[]) => Promise<string | undefined>;

/**
 * The devices that the agent of a node has on the fast path; undefined: it has none, they cannot be listed, or it
 * chooses them by routes (auto).
 */
export async function fastPathDevices(
  { nftables: { fastPath } }: Pick<AgentConfig, "nftables">,
  outputOf: OutputOf,
): Promise<ReturnType<typeof chooseDevices> | undefined> {
  const listed = fastPath && (await outputOf("ip", "-json", "-details", "link", "show"));
  if (fastPath?.devices === "auto") return undefined;
  // Busybox's ip knows no JSON.
  if (fastPath === undefined || !listed?.startsWith("[")) return undefined;
  const filters = await Promise.all(BRIDGE_FILTERS.map((path) => outputOf("cat", path)));
  const bridgeFilter = filters.some((value) => value !== undefined && value.trim() !== "0");
  return chooseDevices(fastPath.devices, linksIn(listed), { bridgeFilter });
}

/** As `ip -json -details link` lists them: a master by its name. */
function linksIn(text: string): readonly NetworkDevice[] {
  const all = itemsOf(JSON.parse(text));
  const numbers = new Map(all.map((one) => [textAt(one, "ifname"), numberOf(valueAt(one, "ifindex"))]));
  return all.flatMap((one) => {
    const [name, index] = [textAt(one, "ifname"), numberOf(valueAt(one, "ifindex"))];
    if (name === undefined || index === undefined) return [];
    const kind = stringOf(valueAt(one, "linkinfo", "info_kind"));
    const master = numbers.get(textAt(one, "master"));
    return [{ name, index, ...(kind !== undefined && { kind }), ...(master !== undefined && { master }) }];
  });
}

import { BlockList, isIP } from "node:net";
import type { IPFamily, NodePortAddresses } from "@fairlead/core";
import { familyOf, isLoopback } from "./families.ts";
import type { NodeIPs } from "./node-ips.ts";

/**
 * On which addresses a family's node ports are served. A family that none of the selectors speaks of is served on all of
 * its addresses, as upstream.
 *
 * @param selectors CIDRs and the words primary, localhost, all (KubeProxyConfiguration.nodePortAddresses)
 * @param live the addresses that the node has now, of both families
 */
export function nodePortAddressesFor(
  family: IPFamily,
  selectors: readonly string[],
  ips: NodeIPs,
  live: readonly string[],
): NodePortAddresses {
  const cidrs = selectors.flatMap((selector) => expand(selector, ips)).filter((cidr) => familyOf(cidr) === family);
  if (cidrs.length === 0 || cidrs.some((cidr) => cidr.endsWith("/0"))) return { kind: "all" };
  const selected = blockList(cidrs);
  const type = family === "IPv4" ? "ipv4" : "ipv6";
  const addresses = live.filter((address) => familyOf(address) === family && selected.check(address, type));
  return { kind: "list", addresses: [...new Set(addresses)].sort() };
}

function expand(selector: string, ips: NodeIPs): readonly string[] {
  switch (selector) {
    case "all":
      return ["0.0.0.0/0", "::/0"];
    case "localhost":
      return ["127.0.0.0/8", "::1/128"];
    case "primary":
      return Object.values(ips)
        .filter((ip) => !isLoopback(ip))
        .map((ip) => `${ip}/${isIP(ip) === 6 ? 128 : 32}`);
    default:
      return [selector];
  }
}

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", length = ""] = cidr.split("/");
    list.addSubnet(address, Number(length), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

import { contains, containsCIDR, familyOf, hostCIDR, inAnyOf, isLoopback, ofFamily } from "@fairlead/base";
import type { IPFamily, NodePortAddresses } from "@fairlead/core";
import type { NodeIPs } from "./node-ips.ts";

/** Keywords of KubeProxyConfiguration.nodePortAddresses; each of them speaks of both families. */
export const KEYWORDS: ReadonlySet<string> = new Set(["primary", "localhost", "all"]);

/**
 * On which addresses a family's node ports are served. A family that none of the selectors speaks of is served on all
 * of its addresses, as upstream. Unlike upstream's, `primary` speaks of a family in which the node has no IP, too: it
 * selects nothing there, where upstream serves on every address.
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
  const cidrs = selectedCIDRs(family, selectors, ips);
  if (cidrs === undefined) return { kind: "all" };
  const isSelected = inAnyOf(cidrs);
  const addresses = live.filter((address) => familyOf(address) === family && isSelected(address));
  return { kind: "list", addresses: [...new Set(addresses)].sort() };
}

/**
 * The addresses among which a service may choose for its node ports: never loopback and never link-local IPv6 ones,
 * which most modes do not serve.
 *
 * @param live the addresses that the node has now, of both families
 */
export function nodePortHosts(family: IPFamily, served: NodePortAddresses, live: readonly string[]): readonly string[] {
  const addresses = served.kind === "all" ? live.filter(ofFamily(family)) : served.addresses;
  const reachable = addresses.filter((address) => !isLoopback(address) && !contains("fe80::/10", address));
  return [...new Set(reachable)].sort();
}

/**
 * Whether an IPv4 loopback address can be among the selected ones, whatever the node's addresses are. `primary` never
 * selects one.
 */
export function selectsIPv4Loopback(selectors: readonly string[]): boolean {
  const cidrs = selectedCIDRs("IPv4", selectors, {});
  if (cidrs === undefined) return true;
  return cidrs.some((cidr) => isLoopback(cidr) || containsCIDR(cidr, "127.0.0.0/8"));
}

/** Undefined: every address of the family. */
function selectedCIDRs(family: IPFamily, selectors: readonly string[], ips: NodeIPs): readonly string[] | undefined {
  const spokenOf = selectors.some((selector) => KEYWORDS.has(selector) || familyOf(selector) === family);
  const cidrs = selectors.flatMap((selector) => expand(selector, ips)).filter((cidr) => familyOf(cidr) === family);
  return !spokenOf || cidrs.some((cidr) => cidr.endsWith("/0")) ? undefined : cidrs;
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
        .map(hostCIDR);
    default:
      return [selector];
  }
}

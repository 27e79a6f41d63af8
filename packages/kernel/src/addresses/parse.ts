import type { NodeAddress } from "./addresses.ts";

/** The device that ipvs mode binds the services' addresses to. */
export const IPVS_DEVICE = "kube-ipvs0";

interface Link {
  readonly ifname?: unknown;
  readonly flags?: unknown;
  readonly addr_info?: unknown;
}

interface AddressInfo {
  readonly family?: unknown;
  readonly local?: unknown;
  readonly prefixlen?: unknown;
  readonly scope?: unknown;
}

/**
 * What `ip -json address` prints.
 *
 * @throws SyntaxError when it is not JSON
 */
export function parseAddresses(json: string): readonly NodeAddress[] {
  const links: unknown = json.trim() === "" ? [] : JSON.parse(json);
  return (Array.isArray(links) ? links : []).flatMap(addressesOf);
}

function addressesOf(link: Link): NodeAddress[] {
  const { ifname, flags, addr_info: infos } = link;
  if (typeof ifname !== "string" || ifname === IPVS_DEVICE || !Array.isArray(infos)) return [];
  const up = Array.isArray(flags) && flags.includes("UP");
  return infos.flatMap((info: AddressInfo) => {
    const { family, local, prefixlen, scope } = info;
    // A filter of `ip` leaves empty objects behind.
    if (typeof local !== "string" || typeof prefixlen !== "number" || typeof scope !== "string") return [];
    if (family !== "inet" && family !== "inet6") return [];
    const name = family === "inet" ? "IPv4" : "IPv6";
    return [{ family: name, address: local, prefixLength: prefixlen, interface: ifname, scope, up }];
  });
}

/** A line of `ip -oneline monitor address` that is about another device than kube-ipvs0: `Deleted 3: eth0    inet …`. */
export function isNodeChange(line: string): boolean {
  const device = /^(?:Deleted )?\d+: (\S+)/.exec(line)?.[1];
  return device !== undefined && device !== IPVS_DEVICE;
}

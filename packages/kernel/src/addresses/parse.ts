import type { NodeAddress } from "./addresses.ts";
import { type AddressChange, IPVS_DEVICE } from "./change.ts";

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

const LINE = /^(?<deleted>Deleted )?\d+: (?<device>[^\s:@]+)(?:[:@]| +inet6? (?<address>[0-9a-f.:]+))/;

/**
 * What a line of `ip -oneline monitor link address` is about: `Deleted 3: eth0    inet 192.0.2.1/24 …`, `3: eth0: <UP>
 * …`. Undefined for what else `ip` prints.
 */
export function parseMonitorLine(line: string): AddressChange | undefined {
  const { deleted, device, address } = LINE.exec(line)?.groups ?? {};
  if (device === undefined) return undefined;
  return { device, gone: deleted !== undefined, ...(address !== undefined && { address }) };
}

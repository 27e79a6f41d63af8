import type { NodeAddress, ServiceDeviceChange } from "./addresses.ts";

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

/**
 * What a line of `ip -oneline monitor link address` is about: `Deleted 3: eth0    inet 192.0.2.1/24 …`, `3: eth0: <UP>
 * …`.
 */
export interface MonitorLine {
  readonly device: string;
  readonly gone: boolean;
  /** Absent: the line is about the device itself. */
  readonly address?: string;
}

const LINE = /^(?<deleted>Deleted )?\d+: (?<device>[^\s:@]+)(?:[:@]| +inet6? (?<address>[0-9a-f.:]+))/;

/** Undefined for what else `ip` prints. */
export function parseMonitorLine(line: string): MonitorLine | undefined {
  const { deleted, device, address } = LINE.exec(line)?.groups ?? {};
  if (device === undefined) return undefined;
  return { device, gone: deleted !== undefined, ...(address !== undefined && { address }) };
}

/** An address of another device than kube-ipvs0. */
export function isNodeChange({ device, address }: MonitorLine): boolean {
  return device !== IPVS_DEVICE && address !== undefined;
}

export function serviceDeviceChange({ device, ...change }: MonitorLine): ServiceDeviceChange | undefined {
  return device === IPVS_DEVICE ? change : undefined;
}

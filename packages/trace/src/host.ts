/** The node: its addresses and its virtual servers. */

import {
  type AddressRange,
  type AddressWords,
  addressRange,
  addressWords,
  familyOf,
  inRange,
  wordsText,
} from "@fairlead/base";
import type { Destination, IPFamily, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";
import type { Environment, Ipvs } from "./environment.ts";
import { checkHostAddress } from "./packet.ts";

/** What a REDIRECT of the host's own packets goes to. */
export const LOOPBACK_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };

const LOOPBACK: Readonly<Record<IPFamily, AddressRange>> = {
  IPv4: addressRange("127.0.0.0/8"),
  IPv6: addressRange("::1/128"),
};
const MULTICAST: Readonly<Record<IPFamily, AddressRange>> = {
  IPv4: addressRange("224.0.0.0/4"),
  IPv6: addressRange("ff00::/8"),
};

/** The facts of an environment, ready to be asked. */
export class Host {
  readonly environment: Environment;
  readonly servers: VirtualServers;
  readonly #family: IPFamily;
  readonly #local: ReadonlySet<string>;
  readonly #broadcast: ReadonlySet<string>;

  constructor(environment: Environment, family: IPFamily) {
    this.environment = environment;
    this.servers = new VirtualServers(environment.ipvs, family);
    this.#family = family;
    this.#local = canonicalAddresses("localAddresses", environment, family);
    this.#broadcast = canonicalAddresses("broadcastAddresses", environment, family);
  }

  isLocal(address: AddressWords): boolean {
    return inRange(LOOPBACK[this.#family], address) || (this.#local.size > 0 && this.#local.has(wordsText(address)));
  }

  isMulticast(address: AddressWords): boolean {
    return inRange(MULTICAST[this.#family], address);
  }

  /** 0.0.0.0/8 counts as the kernel counts it (inet_addr_type). */
  isBroadcast(address: AddressWords): boolean {
    if (this.#family === "IPv6") return false;
    const [word = 0] = address;
    return word === 0xffffffff || word >>> 24 === 0 || this.#broadcast.has(wordsText(address));
  }

  /** The first of the host's addresses in the family. */
  ownAddress(): string | undefined {
    return this.#local.values().next().value;
  }
}

/** A destination that a packet may get, and in how many of all cases. */
export interface Share {
  readonly destination: Destination;
  readonly share: number;
}

export function virtualServerKey({ protocol, address, port }: VirtualServerKey): string {
  return `${protocol.toLowerCase()} ${canonical(address)} ${port}`;
}

/** @throws PacketError for what is not an address */
function canonicalAddresses(
  field: "localAddresses" | "broadcastAddresses",
  environment: Environment,
  family: IPFamily,
): Set<string> {
  const canonical = new Set<string>();
  for (const address of environment[field] ?? []) {
    checkHostAddress(field, address);
    if (familyOf(address) === family) canonical.add(wordsText(addressWords(address)));
  }
  return canonical;
}

/**
 * How schedulers spread connections in the long run; what a single one gets depends on those before it, or on a hash of
 * addresses. Weight 0 gets none of any of them.
 */
const SPREADS: ReadonlyMap<string, "evenly" | "by weight"> = new Map([
  ...(["rr", "lc", "dh"] as const).map((name) => [name, "evenly"] as const),
  ...(["wrr", "wlc", "sh", "mh", "sed", "nq", "lblc", "lblcr"] as const).map((name) => [name, "by weight"] as const),
]);

class VirtualServers {
  readonly #ipvs: Ipvs | undefined;
  readonly #servers = new Map<string, VirtualServerState>();

  constructor(ipvs: Ipvs | undefined, family: IPFamily) {
    this.#ipvs = ipvs;
    for (const server of ipvs?.servers ?? []) {
      if (server.family === family) this.#servers.set(virtualServerKey(server), server);
    }
  }

  /** Whether ip_vs has its connections tracked (net.ipv4.vs.conntrack): without it no nat table sees them. */
  get tracked(): boolean {
    return this.#ipvs?.conntrack === true;
  }

  find(protocol: string, address: string, port: number | undefined): VirtualServerState | undefined {
    return port === undefined ? undefined : this.#servers.get(`${protocol} ${address} ${port}`);
  }

  /**
   * Where the server sends a new connection of the client; empty: it has no destination that takes any.
   *
   * @throws RangeError for a scheduler or a way of forwarding that the tracer doesn't know
   */
  shares(server: VirtualServerState, client: string): readonly Share[] {
    const kept = this.#template(server, client);
    if (kept !== undefined) return [{ destination: kept, share: 1 }];
    const spread = SPREADS.get(server.scheduler);
    if (spread === undefined) throw new RangeError(`${nameOf(server)}: scheduler "${server.scheduler}" is not known`);
    const open = server.destinations.filter(({ weight }) => weight > 0);
    const part = ({ weight }: Destination) => (spread === "evenly" ? 1 : weight);
    const sum = open.reduce((total, destination) => total + part(destination), 0);
    return open.map((destination) => ({ destination: demandNat(server, destination), share: part(destination) / sum }));
  }

  /**
   * What the client got before; a destination of weight 0 keeps its clients unless the setting says otherwise
   * (ip_vs_check_template).
   */
  #template(server: VirtualServerState, client: string): Destination | undefined {
    if (server.persistenceSeconds === undefined) return undefined;
    const template = this.#ipvs?.templates?.find(
      (entry) => virtualServerKey(entry.server) === virtualServerKey(server) && canonical(entry.client) === client,
    );
    if (template === undefined) return undefined;
    const { address, port } = template.destination;
    const known = server.destinations.find((entry) => canonical(entry.address) === address && entry.port === port);
    if (known === undefined) return undefined;
    return known.weight === 0 && this.#ipvs?.expireQuiescentTemplate === true ? undefined : demandNat(server, known);
  }
}

function demandNat(server: VirtualServerState, destination: Destination): Destination {
  if (destination.forwarding === "masquerade") return destination;
  throw new RangeError(`${nameOf(server)}: the tracer only knows destinations by masquerade`);
}

function nameOf({ protocol, address, port }: VirtualServerKey): string {
  return `virtual server ${protocol} ${address} ${port}`;
}

function canonical(address: string): string {
  return wordsText(addressWords(address));
}

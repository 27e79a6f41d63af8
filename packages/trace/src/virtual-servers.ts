import { addressWords, wordsText } from "@fairlead/base";
import type { Destination, IPFamily, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";
import type { Ipvs } from "./ipvs.ts";

/** A destination that a packet may get, and in how many of all cases. */
export interface Share {
  readonly destination: Destination;
  readonly share: number;
}

/**
 * How schedulers spread connections in the long run; what a single one gets depends on those before it, or on a hash of
 * addresses. Weight 0 gets none of any of them.
 */
const SPREADS: ReadonlyMap<string, "evenly" | "by weight"> = new Map([
  ...(["rr", "lc", "dh"] as const).map((name) => [name, "evenly"] as const),
  ...(["wrr", "wlc", "sh", "mh", "sed", "nq", "lblc", "lblcr"] as const).map((name) => [name, "by weight"] as const),
]);

/** The virtual servers of one family, ready to be asked. */
export class VirtualServers {
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

export function virtualServerKey({ protocol, address, port }: VirtualServerKey): string {
  return `${protocol.toLowerCase()} ${canonical(address)} ${port}`;
}

function nameOf({ protocol, address, port }: VirtualServerKey): string {
  return `virtual server ${protocol} ${address} ${port}`;
}

function canonical(address: string): string {
  return wordsText(addressWords(address));
}

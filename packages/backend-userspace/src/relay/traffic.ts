/** What all relays of a process have done so far, for metrics. */
export interface TrafficCounts {
  /** TCP connections and UDP flows connected to an endpoint. */
  readonly accepted: Readonly<Record<"TCP" | "UDP", number>>;
  /** Those that got none: at a limit, without an endpoint or one that could be connected, or not of this node. */
  readonly refused: Readonly<Record<RefusalReason, number>>;
  /** Endpoints that could not be connected and were passed over for the next. */
  readonly passedOver: number;
  /** Ended because nothing was said for the idle time. */
  readonly idled: number;
  /** Bytes of TCP connections that have ended and of all datagrams, by direction. */
  readonly bytes: Readonly<Record<Direction, number>>;
  /** Open now: connections with their two sockets, flows with one, listening sockets. */
  readonly sockets: number;
  /** How many of them may be open at once. */
  readonly maxSockets: number;
}

export type RefusalReason = "service-limit" | "total-limit" | "unreachable" | "no-endpoint" | "not-local";
export type Direction = "to-endpoint" | "to-client";

/** A connection or flow that can be ended from outside. */
export interface Live {
  /** Says goodbye in the protocol's way. */
  end(): void;
  destroy(): void;
  /** Client and endpoint; undefined: it has no endpoint yet, or has ended. */
  relayed(): RelayedConnection | undefined;
}

/** A number of sockets with a bound. */
export class SocketBudget {
  readonly max: number;
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  has(count: number): boolean {
    return this.#used + count <= this.max;
  }

  /** Negative: gives back. */
  take(count: number): void {
    this.#used += count;
  }
}

/** Counts and bounds what the relays of a process do, and knows what is alive. */
export class RelayTraffic {
  /** What sockets the relays may still open. */
  readonly sockets: SocketBudget;
  /** Where clients are accepted now. */
  readonly listening = new Set<ListeningRelay>();
  readonly #live = new Set<Live>();
  readonly #accepted = { TCP: 0, UDP: 0 };
  readonly #refused = { "service-limit": 0, "total-limit": 0, unreachable: 0, "no-endpoint": 0, "not-local": 0 };
  readonly #bytes = { "to-endpoint": 0, "to-client": 0 };
  #passedOver = 0;
  #onIdle = () => {};
  #idled = 0;

  constructor(maxSockets: number) {
    this.sockets = new SocketBudget(maxSockets);
  }

  /** A snapshot of all counts, for metrics. */
  get counts(): TrafficCounts {
    return {
      accepted: { ...this.#accepted },
      refused: { ...this.#refused },
      passedOver: this.#passedOver,
      idled: this.#idled,
      bytes: { ...this.#bytes },
      sockets: this.sockets.used,
      maxSockets: this.sockets.max,
    };
  }

  /** Counts a client's connection or flow that a relay took. */
  accepted(protocol: "TCP" | "UDP"): void {
    this.#accepted[protocol] += 1;
  }

  /** Counts a client's connection or flow that a relay refused. */
  refused(reason: RefusalReason): void {
    this.#refused[reason] += 1;
  }

  /** Counts an endpoint that did not answer, so that the next one was tried. */
  passedOver(): void {
    this.#passedOver += 1;
  }

  /** Counts a flow that ended because nothing came for its idle time. */
  idled(): void {
    this.#idled += 1;
  }

  /** Counts bytes that a relay carried in one direction. */
  carried(direction: Direction, bytes: number): void {
    this.#bytes[direction] += bytes;
  }

  /** Adds a connection or flow that is alive. */
  add(live: Live): void {
    this.#live.add(live);
  }

  /** Removes a connection or flow that has ended. */
  delete(live: Live): void {
    this.#live.delete(live);
    if (this.idle) this.#onIdle();
  }

  /** What is alive, as its sockets are at that moment: nothing is kept for it. */
  *connections(): Generator<RelayedConnection, void, void> {
    for (const live of this.#live) {
      const relayed = live.relayed();
      if (relayed !== undefined) yield relayed;
    }
  }

  /** Ends everything that is alive, and does away with what has not ended when `patience` resolves. */
  async end(patience: Promise<void>): Promise<void> {
    for (const live of [...this.#live]) live.end();
    if (this.idle) return;
    await Promise.race([patience, new Promise<void>((resolve) => (this.#onIdle = resolve))]);
    for (const live of [...this.#live]) live.destroy();
  }

  /** Whether nothing is alive. */
  get idle(): boolean {
    return this.#live.size === 0;
  }
}

/**
 * The traffic of a process, which all of its relays share.
 *
 * @param maxSockets that may be open at once. Default 32,000.
 */
export function createTraffic({ maxSockets = 32_000 }: { readonly maxSockets?: number } = {}): RelayTraffic {
  return new RelayTraffic(maxSockets);
}

/** One end of a connection; the address is canonical. */
interface RelaySocket {
  /** Canonical address without a length. */
  readonly address: string;
  /** Port, 1 to 65535. */
  readonly port: number;
}

/** Where a relay listens. */
export interface ListeningRelay extends RelaySocket {
  /** The transport protocol that it accepts. */
  readonly protocol: "TCP" | "UDP";
}

/** A connection or flow that a relay carries. */
export interface RelayedConnection {
  /** The transport protocol of the connection or flow. */
  readonly protocol: "TCP" | "UDP";
  /** Who came, as the relay sees it. */
  readonly client: RelaySocket;
  /** Where it came to. */
  readonly relay: RelaySocket;
  /** The endpoint that it was given to. */
  readonly endpoint: RelaySocket;
}

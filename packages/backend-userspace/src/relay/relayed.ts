/** One end of a connection; the address is canonical. */
interface RelaySocket {
  readonly address: string;
  readonly port: number;
}

/** Where a relay listens. */
export interface ListeningRelay extends RelaySocket {
  readonly protocol: "TCP" | "UDP";
}

/** A connection or flow that a relay carries. */
export interface RelayedConnection {
  readonly protocol: "TCP" | "UDP";
  /** Who came, as the relay sees it. */
  readonly client: RelaySocket;
  /** Where it came to. */
  readonly relay: RelaySocket;
  /** Whom it was given to. */
  readonly endpoint: RelaySocket;
}

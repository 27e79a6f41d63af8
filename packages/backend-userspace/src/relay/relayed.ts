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
  /** Whom it was given to. */
  readonly endpoint: RelaySocket;
}

import type { IPFamily, Protocol } from "../family.ts";

/** What is read of a connection tracking entry: the destination that the client called, and the one that answers. */
export interface ConntrackFlow {
  /** The family of its addresses. */
  readonly family: IPFamily;
  /** The transport protocol. */
  readonly protocol: Protocol;
  /** Where the client's packets went, before any translation; canonical address. */
  readonly originalDestination: string;
  /** The port that the client called. */
  readonly originalPort: number;
  /** The client, before any translation; canonical. Absent where only the tool `conntrack` reads and deletes. */
  readonly originalSource?: string;
  /** Who answers: the endpoint after DNAT. Canonical address. */
  readonly replySource: string;
  /** The port that answers. */
  readonly replyPort: number;
}

/** Picks, of the entries that it is given, those to delete: the same values, not copies of them. */
export type Choose = (flows: readonly ConntrackFlow[]) => Iterable<ConntrackFlow>;

/**
 * The connection tracking table of this network namespace, zone 0 of it: zones are how other networks (OVN) track the
 * same addresses for themselves, and their entries are neither read nor deleted.
 */
export interface Conntrack {
  /**
   * Reads the entries of a family and protocol once, and deletes those that `choose` picks. Many clients of one service
   * give many equal flows. Entries that are gone by then are no error.
   *
   * @param choose is called with a batch at a time; what it is given is read anew for each sweep
   * @returns how many entries were picked
   * @throws CommandError when the tool is missing, not permitted or fails; NetlinkError when the kernel refuses
   */
  sweep(family: IPFamily, protocol: Protocol, choose: Choose): Promise<number>;
}

import type { IPFamily, Protocol } from "../family.ts";

/** What is read of a connection tracking entry: whom the client called, and who really answers. */
export interface ConntrackFlow {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** Where the client's packets went, before any translation; canonical address. */
  readonly originalDestination: string;
  readonly originalPort: number;
  /** Who answers: the endpoint after DNAT. Canonical address. */
  readonly replySource: string;
  readonly replyPort: number;
}

/** The connection tracking table of this network namespace. */
export interface Conntrack {
  /**
   * Entries of a family and protocol as they are read. Many clients of one service give many equal flows.
   *
   * @throws CommandError when the tool is missing, not permitted or fails
   */
  list(family: IPFamily, protocol: Protocol): AsyncIterable<ConntrackFlow>;
  /**
   * Deletes all entries that look like one of the flows, whoever their clients are. Entries that are gone already are no error.
   *
   * @throws CommandError as `list`
   */
  delete(flows: Iterable<ConntrackFlow>): Promise<void>;
}

import type { IPFamily } from "../objects.ts";

/** What is read of a conntrack entry; a client that lists them may add fields (`T extends ConntrackFlow`). */
export interface ConntrackFlow {
  /** The family of its addresses. */
  readonly family: IPFamily;
  /** Lower case, as conntrack prints it: tcp, udp, sctp, icmp, … */
  readonly protocol: string;
  /** Canonical address that the client sent to. */
  readonly originalDestination: string;
  /** Absent where the protocol has no ports. */
  readonly originalPort?: number;
  /** Canonical address of the client. Absent: unknown. */
  readonly originalSource?: string;
  /** Canonical address and port that the answer comes from: the endpoint, where the flow was translated. */
  readonly replySource: string;
  /** 1 to 65535; absent where the protocol has no ports. */
  readonly replyPort?: number;
}

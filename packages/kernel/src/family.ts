export type { IPFamily } from "@fairlead/netfilter";

/** A transport protocol of Services. */
export type Protocol = "TCP" | "UDP" | "SCTP";

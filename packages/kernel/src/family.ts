export type { IPFamily } from "@fairlead/netfilter";

export type Protocol = "TCP" | "UDP" | "SCTP";

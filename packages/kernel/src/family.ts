export type IPFamily = "IPv4" | "IPv6";

export type Protocol = "TCP" | "UDP" | "SCTP";

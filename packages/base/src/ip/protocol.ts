/** The transport protocols that a Service port can have (core/v1 Protocol). */
export type Protocol = "TCP" | "UDP" | "SCTP";

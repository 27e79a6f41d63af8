/** The kernel's states by number, as conntrack calls them (tcp_conntrack_names, sctp_conntrack_names). */
export const STATES = {
  TCP: [
    ...["NONE", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT"],
    ...["LAST_ACK", "TIME_WAIT", "CLOSE", "SYN_SENT2"],
  ],
  SCTP: [
    ...["NONE", "CLOSED", "COOKIE_WAIT", "COOKIE_ECHOED", "ESTABLISHED", "SHUTDOWN_SENT"],
    ...["SHUTDOWN_RECD", "SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT", "HEARTBEAT_ACKED"],
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

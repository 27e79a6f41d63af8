/** The iptables of a family, of whichever variant the machine prefers. */
export const PLAIN_TOOL = { IPv4: "iptables", IPv6: "ip6tables" } as const;

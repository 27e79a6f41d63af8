/** The iptables of a family, of whichever variant the machine prefers. */
export const plainTool = { IPv4: "iptables", IPv6: "ip6tables" } as const;

/** IPSET_CMD_LIST, IPSET_CMD_ADD and IPSET_CMD_DEL of NFNL_SUBSYS_IPSET (linux/netfilter/ipset/ip_set.h). */
export const TYPES = { list: 0x607, add: 0x609, del: 0x60a } as const;

/** Attributes of a message, those of a member within `data`, and those of an address (the same header). */
export const REQUEST = { protocol: 1, set: 2, type: 3, family: 5, data: 7, members: 8 } as const;
export const PART = { address: 1, port: 4, protocol: 7, second: 20, secondLength: 21 } as const;
export const ADDRESS = { IPv4: 1, IPv6: 2 } as const;

export const PROTOCOL_NUMBERS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

import type { IPFamily } from "../family.ts";

/** AF_INET and AF_INET6 of linux/socket.h; netfilter's NFPROTO_IPV4 and NFPROTO_IPV6 are the same numbers. */
export const ADDRESS_FAMILIES = { IPv4: 2, IPv6: 10 } as const satisfies Record<IPFamily, number>;

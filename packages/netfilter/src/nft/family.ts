import type { IPFamily } from "@fairlead/base";

/** The address families of tables that are read and written here. */
export type NftFamily = "ip" | "ip6";

/** What nftables calls an IP family. */
export const NFT_FAMILY: Readonly<Record<IPFamily, NftFamily>> = { IPv4: "ip", IPv6: "ip6" };

/** Which IP family a table of nftables is of. */
export const IP_FAMILY: Readonly<Record<NftFamily, IPFamily>> = { ip: "IPv4", ip6: "IPv6" };

/** NFPROTO_IPV4 and NFPROTO_IPV6, which are AF_INET and AF_INET6. */
export const FAMILY_NUMBERS: Readonly<Record<NftFamily, number>> = { ip: 2, ip6: 10 };

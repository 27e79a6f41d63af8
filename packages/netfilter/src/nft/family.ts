/** The address families of tables that are read and written here. */
export type NftFamily = "ip" | "ip6";

/** NFPROTO_IPV4 and NFPROTO_IPV6. */
export const FAMILY_NUMBERS: Readonly<Record<NftFamily, number>> = { ip: 2, ip6: 10 };

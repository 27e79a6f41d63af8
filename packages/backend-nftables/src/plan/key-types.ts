import type { DataType, NftFamily, NftSet } from "@fairlead/netfilter/nft";

/** A set without its elements. */
export type EmptySet = Omit<NftSet, "elements">;

export function addressType(family: NftFamily): DataType {
  return family === "ip" ? "ipv4_addr" : "ipv6_addr";
}

/** Of keys that `addressKey` makes. */
export function frontendKey(family: NftFamily): NftSet["key"] {
  return [addressType(family), ...nodePortKeyTypes];
}

/** Of keys that `nodePortKey` makes. */
export const nodePortKeyTypes = ["inet_proto", "inet_service"] as const satisfies NftSet["key"];

import type { Frontend, ServicePortGroup } from "@fairlead/core";
import { addressHex, type Hex } from "@fairlead/netfilter/nft";
import { hairpinKey } from "./keys.ts";

/** An element that several groups may have in common. */
export interface SharedElement {
  readonly set: "cluster-ips" | "hairpin-connections";
  readonly key: Hex;
}

/** @param frontends of the group, those that this proxy serves */
export function sharedElements(
  { cluster, local, protocol }: ServicePortGroup,
  frontends: readonly Frontend[],
): SharedElement[] {
  const shared = new Map<string, SharedElement>();
  const add = (set: SharedElement["set"], key: Hex) => shared.set(`${set} ${key}`, { set, key });
  for (const { reach, address } of frontends) {
    if (reach === "internal" && address !== undefined) add("cluster-ips", addressHex(address));
  }
  for (const endpoints of [cluster, local]) {
    for (const endpoint of endpoints) {
      if (endpoint.local) add("hairpin-connections", hairpinKey(endpoint, protocol));
    }
  }
  return [...shared.values()];
}

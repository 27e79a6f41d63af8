import { bytesText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { bytesOf, type Hex, IP_FAMILY, lengthOf, type NftTable } from "@fairlead/netfilter/nft";
import { type Destination, protocolText } from "./destination.ts";

/** What a map of verdicts has: addresses and ports, and ports of the node (`ip daddr . meta l4proto . th dport`). */
export function* destinationsInNft({ family, sets }: NftTable, of: IPFamily): Generator<Destination> {
  if (IP_FAMILY[family] !== of) return;
  for (const { key, data, elements } of sets.values()) {
    if (data !== "verdict") continue;
    const [first, ...rest] = key;
    const isAddress = first === "ipv4_addr" || first === "ipv6_addr";
    if ((isAddress ? rest : key).join() !== "inet_proto,inet_service") continue;
    const length = isAddress ? 2 * lengthOf([first]) : 0;
    for (const { key: hex } of elements.values()) {
      yield { ...portIn(hex.slice(length)), ...(isAddress && { address: bytesText(bytesOf(hex.slice(0, length))) }) };
    }
  }
}

/** `meta l4proto . th dport` */
function portIn(hex: Hex): Pick<Destination, "protocol" | "port"> {
  return { protocol: protocolText(hex.slice(0, 2)), port: Number.parseInt(hex.slice(8, 12), 16) };
}

import { bytesText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { bytesOf, type Expression, type Hex, type NftTable } from "@fairlead/netfilter/nft";

/** Where the source address is in the header. */
const SOURCES = {
  ip: { family: "IPv4", offset: 12, length: 4 },
  ip6: { family: "IPv6", offset: 8, length: 16 },
} as const;

/** CIDRs that rules compare the source address with; single hosts are no class of senders. */
export function* sourcesInNft({ family, chains }: NftTable, of: IPFamily): Generator<string> {
  if (SOURCES[family].family !== of) return;
  for (const { rules } of chains.values()) {
    for (const { expressions } of rules) yield* sourcesIn(expressions, SOURCES[family]);
  }
}

function* sourcesIn(expressions: readonly Expression[], source: (typeof SOURCES)[keyof typeof SOURCES]) {
  for (const [at, load] of expressions.entries()) {
    if (load.kind !== "payload" || load.base !== "network" || load.offset !== source.offset) continue;
    const [next, behind] = [expressions[at + 1], expressions[at + 2]];
    const mask = next?.kind === "bitwise" ? next.mask : "ff".repeat(load.length);
    const compared = next?.kind === "bitwise" ? behind : next;
    if (compared?.kind !== "cmp") continue;
    const bits = onesIn(mask);
    if (bits === 0 || bits === 8 * source.length) continue;
    yield `${bytesText(bytesOf(compared.value.padEnd(2 * source.length, "0")))}/${bits}`;
  }
}

function onesIn(mask: Hex): number {
  return [...bytesOf(mask)].reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
}

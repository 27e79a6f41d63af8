import { addressWords, masked, wordsText } from "@fairlead/base";
import type { Match } from "@fairlead/netfilter";
import type { RuleContext } from "./rule-context.ts";
import type { PacketEnd, Walk } from "./walk.ts";

type Recent = Extract<Match, { readonly kind: "recent" }>;

const FULL_MASKS: ReadonlySet<string> = new Set(["255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);

/**
 * `--set` always matches and notes the address; `--rcheck` asks whether it was seen, within so many seconds
 * (xt_recent).
 */
export function matchesRecent(match: Recent, { walk, host }: RuleContext): boolean {
  const address = sideKey(match, match.side === "rsource" ? walk.source : walk.destination);
  if (match.op === "set") {
    walk.seen = { item: { list: match.name, address }, before: walk.seen };
    return true;
  }
  if (seenOnTheWay(walk, match.name, address)) return true;
  const ages = host.environment.recent?.get(match.name)?.get(address) ?? [];
  return ages.some((age) => match.seconds === undefined || match.seconds === 0 || age <= match.seconds);
}

function sideKey(match: Recent, { address, words }: PacketEnd): string {
  if (match.mask === undefined || FULL_MASKS.has(match.mask)) return address;
  return wordsText(masked(words, addressWords(match.mask)));
}

function seenOnTheWay(walk: Walk, list: string, address: string): boolean {
  for (let at = walk.seen; at !== undefined; at = at.before) {
    if (at.item.list === list && at.item.address === address) return true;
  }
  return false;
}

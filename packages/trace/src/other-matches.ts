import type { Match } from "@fairlead/netfilter";
import { type RuleContext, undecidable } from "./rule-context.ts";

type Unknown = Extract<Match, { readonly kind: "unknown" }>;

/**
 * Matches that rules are not typed for but that firewalls are full of: several ports at once.
 *
 * @throws TraceError for all others
 */
export function matchesOther(match: Unknown, place: RuleContext): boolean {
  const decided = match.module === "multiport" ? multiport(match, place) : undefined;
  if (decided !== undefined) return decided;
  throw undecidable(place, `the tracer does not know the match "${match.module}", at least with these options`);
}

/** `[!] --dports 80,443,8000:8080`; undefined: none of the forms that iptables-save prints. */
function multiport({ args }: Unknown, { walk }: RuleContext): boolean | undefined {
  const negated = args[0] === "!";
  const [option, list = "", ...more] = negated ? args.slice(1) : args;
  const sides = {
    "--sports": [walk.source],
    "--dports": [walk.destination],
    "--ports": [walk.source, walk.destination],
  };
  if (more.length > 0 || !isKeyOf(sides, option)) return undefined;
  const ranges = list.split(",").map((part) => part.split(":").map(Number));
  const listed = (port: number) => ranges.some(([from = -1, to = from]) => port >= from && port <= to);
  return sides[option].some(({ port }) => port !== undefined && listed(port)) !== negated;
}

function isKeyOf<Key extends string>(object: Readonly<Record<Key, unknown>>, key: string | undefined): key is Key {
  return key !== undefined && Object.hasOwn(object, key);
}

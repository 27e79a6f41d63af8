import { containsCIDR } from "@fairlead/base";
import type { LearnedOnce } from "@fairlead/intake";
import type { NodeOwnership } from "../../node/agent-ownership.ts";

type CIDRReport = LearnedOnce["report"]["cidrs"][number];

/** What running agents let take effect, by what becomes of it from the objects only. */
export interface InEffect {
  /** It would be held: it has to be accepted. */
  readonly held: readonly CIDRReport[];
  /** It would be refused, whatever is accepted. */
  readonly refused: readonly CIDRReport[];
  /** No object defines it: agents forget it. */
  readonly gone: readonly CIDRReport[];
  /** By source the fewest CIDRs that have all that counts or would be held; of sources with something held. */
  readonly within: ReadonlyMap<string, readonly string[]>;
}

/**
 * Compares what agents let take effect, of this build or of one before, with what the objects come to.
 *
 * @param now what an agent of this build that starts afresh makes of the objects
 */
export function inEffect(agents: readonly NodeOwnership[], now: readonly CIDRReport[]): InEffect {
  const counting = new Map<string, CIDRReport>();
  for (const one of agents) {
    if (!("ownership" in one)) continue;
    for (const cidr of one.ownership.networks?.cidrs ?? []) {
      if (cidr.side === "excluded" && cidr.stage === "effective") counting.set(keyOf(cidr), cidr);
    }
  }
  const known = new Map(now.filter(({ side }) => side === "excluded").map((one) => [keyOf(one), one]));
  const of = (stage: CIDRReport["stage"]) =>
    [...counting.keys()].flatMap((key) => known.get(key) ?? []).filter((one) => one.stage === stage);
  const gone = [...counting].flatMap(([key, cidr]) => (known.has(key) ? [] : [cidr]));
  const held = of("held");
  const sources = [...new Set(held.map(({ source }) => source))];
  const counts = [...known.values()].filter(({ stage }) => stage === "effective" || stage === "held");
  const within = sources.map((source) => {
    return [source, outermost(counts.filter((one) => one.source === source).map(({ cidr }) => cidr))] as const;
  });
  return { held, refused: of("refused"), gone, within: new Map(within) };
}

function keyOf({ source, cidr }: CIDRReport): string {
  return `${source} ${cidr}`;
}

function outermost(cidrs: readonly string[]): readonly string[] {
  return cidrs.filter((one) => !cidrs.some((other) => other !== one && containsCIDR(other, one)));
}

import { jump, type Match, type Rule, shareProbability } from "@fairlead/netfilter";

/** Where packets may go, and how many endpoints that stands for. */
export interface Choice {
  readonly chain: string;
  readonly weight: number;
  readonly remark: readonly Match[];
}

/**
 * Each rule takes its share of what the rules before it left: 1/n, 1/(n-1), … and the last one all.
 *
 * @param total the choices' weights together
 */
export function* spread(choices: Iterable<Choice>, total: number): Generator<Rule> {
  let left = total;
  for (const { chain, weight, remark } of choices) {
    const share = shareOf(weight, left);
    left -= weight;
    yield { matches: remark.length === 0 ? share : [...remark, ...share], target: jump(chain) };
  }
}

function shareOf(weight: number, left: number): readonly Match[] {
  if (weight === left) return ALL;
  if (weight > 1) return [randomly(weight, left)];
  const known = shares.get(left);
  if (known !== undefined) return known;
  const share: readonly Match[] = [randomly(1, left)];
  shares.set(left, share);
  return share;
}

function randomly(weight: number, left: number): Match {
  return { kind: "statistic", mode: "random", probability: shareProbability(weight, left) };
}

const ALL: readonly Match[] = [];
/** As many as the longest chain has endpoints: all services share them. */
const shares = new Map<number, readonly Match[]>();

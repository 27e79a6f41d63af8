import {
  type ChainFill,
  type Command,
  emptyChain,
  type IPFamily,
  type Rule,
  readRule,
  repairJumps,
} from "@fairlead/netfilter";
import type { ChainRules } from "./plan/chain-rules.ts";
import { append, ensureRule, fillChains } from "./plan/commands.ts";
import { constantChains, lastRules, type ServiceTable, sharedChains, type Wanted } from "./plan/fixed.ts";
import { KUBELET_JUMP } from "./plan/jumps.ts";
import { KUBELET_FIREWALL, SERVICES } from "./plan/names.ts";
import { SameTexts } from "./same-texts.ts";

/** What was seen of the chains of fixed names in a table. */
export interface Seen {
  /** The rules as text of the chains that were read as a whole; one that is not there has none. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly read: ReadonlySet<string>;
  /** Chains that all services share, that were not read, and that hold another number of rules than they must. */
  readonly miscounted: ReadonlySet<string>;
  /** Those of `miscounted` without a rule. */
  readonly empty: ReadonlySet<string>;
}

/** A chain that does not hold what it must, and what makes it do so. */
export interface Repair {
  readonly chain: string;
  readonly commands: Iterable<Command | ChainFill>;
}

/**
 * What brings back the chains of fixed names, each by itself; nothing for those that hold what they must.
 *
 * @param dispatch what the chains that all services share must hold
 * @param dispatchTexts the same as text, of those that were read
 * @returns undefined: the chains of services may be gone as well
 */
export function chainRepairs(
  family: IPFamily,
  table: ServiceTable,
  wanted: Wanted,
  dispatch: ReadonlyMap<string, readonly Rule[]>,
  dispatchTexts: ReadonlyMap<string, readonly string[]>,
  seen: Seen,
): readonly Repair[] | undefined {
  const same = new SameTexts(family);
  const constant = constantChains(table, wanted.context).filter(({ chain }) => seen.read.has(chain));
  if (!constant.every(({ chain }) => seen.texts.has(chain))) return undefined;
  const shared = [...dispatch].map(([chain, rules]): ChainRules => ({ chain, rules }));
  if (table === "nat" && looksFlushed([...constant, ...shared], seen)) return undefined;
  const found = (chain: string) => seen.texts.get(chain) ?? [];
  const isRight = ({ chain }: ChainRules) => {
    if (!seen.read.has(chain)) return !seen.miscounted.has(chain);
    const last = table === "nat" && chain === SERVICES ? lastRules(wanted.context) : [];
    return same.inAnyOrder(found(chain), dispatchTexts.get(chain) ?? []) && same.endsWith(found(chain), last);
  };
  return [
    ...constant.filter(({ chain, rules }) => !same.inOrder(found(chain), [...rules])).map(filled),
    ...shared.filter((one) => !isRight(one)).map(filled),
    ...sharedChains(table, wanted.context)
      .filter(({ chain }) => seen.read.has(chain))
      .filter(({ chain, rules }) => !seen.texts.has(chain) || !same.contains(found(chain), [...rules]))
      .map((ours) => amended(ours, seen.texts.get(ours.chain), family)),
  ];
}

/**
 * Two empty chains with KUBE-SERVICES among them are no slip of somebody's hand: whoever flushes nat empties the chains
 * of services, too, which nobody looks at.
 */
function looksFlushed(chains: readonly ChainRules[], { texts, read, empty }: Seen): boolean {
  const emptied = chains
    .filter(({ chain, rules }) => rules.length > 0 && (read.has(chain) ? !texts.get(chain)?.length : empty.has(chain)))
    .map(({ chain }) => chain);
  return emptied.length > 1 && emptied.includes(SERVICES);
}

function filled(one: ChainRules): Repair {
  return { chain: one.chain, commands: fillChains([one]) };
}

/** Gives a chain of others what it lacks of ours. */
function amended({ chain, rules }: ChainRules, texts: readonly string[] | undefined, family: IPFamily): Repair {
  const existing = (texts ?? []).map((text) => readRule(text, 0, family));
  if (chain === KUBELET_FIREWALL) {
    const made = texts === undefined ? [emptyChain(chain)] : [];
    return { chain, commands: [...made, ...[...rules].map((rule) => append(chain, rule))] };
  }
  const wanted = [...rules];
  if (!wanted.includes(KUBELET_JUMP)) return { chain, commands: repairJumps(chain, { first: wanted }, existing) };
  return { chain, commands: wanted.flatMap((rule) => ensureRule(chain, rule, existing)) };
}

/** The chains that are always there: whether they are still as written, and their repair. */

import { errorText, inSlices } from "@fairlead/base";
import type { Difference } from "@fairlead/core";
import {
  type IPFamily,
  payloadText,
  type Rule,
  readRule,
  renderRule,
  repairJumps,
  restoreLines,
  ruleKey,
  type Table,
} from "@fairlead/netfilter";
import type { ResolvedOptions } from "./options.ts";
import { type FixedChain, fixedChains, type Wanted } from "./plan/frame.ts";
import { fillChains } from "./plan/rule-parts.ts";
import type { RulesPort } from "./port.ts";

interface Found {
  readonly table: Table;
  readonly chain: FixedChain;
  /** Its rules as the tools print them; undefined: it is not there. */
  readonly texts: readonly string[] | undefined;
  readonly difference: string;
}

const TABLES = ["mangle", "filter", "nat"] as const satisfies readonly Table[];

/**
 * Compares the chains of fixed names with what they must hold, table by table: the canary, the jumps to our chains, the
 * rules that do not depend on services, and the chains that all services share. One process lists a table, and none
 * starts where the kernel says that the table is as it was when it was right.
 */
export class FixedChains {
  readonly #port: RulesPort;
  readonly #options: ResolvedOptions;
  /** By table: what the kernel said of it when it held what it must. */
  readonly #right = new Map<Table, string>();
  /** The last check found a difference: what was written after it did not help, or a program changes it repeatedly. */
  #differed = false;

  constructor(port: RulesPort, options: ResolvedOptions) {
    this.#port = port;
    this.#options = options;
  }

  /** Something was written: also a table that is as it was may lack it. */
  forget(): void {
    this.#right.clear();
  }

  /**
   * A single chain is written again by itself: a full sync reads and renders all that services have, at 10,000 of them
   * with 14 s of CPU in place of one. Several are a flush, which empties the chains of services as well.
   */
  async difference(wanted: Wanted): Promise<Difference | undefined> {
    const all: Found[] = [];
    for (const table of TABLES) all.push(...(await this.#foundIn(table, wanted)));
    const [found, more] = all;
    const isFirst = !this.#differed;
    this.#differed = found !== undefined;
    if (found === undefined) return undefined;
    const what = all.map(({ table, chain, difference }) => `chain ${chain.chain} of the ${table} table ${difference}`);
    return { what, repaired: isFirst && more === undefined && (await this.#repair(found)) };
  }

  async #foundIn(table: (typeof TABLES)[number], wanted: Wanted): Promise<readonly Found[]> {
    // Before the rules are read, so that a change meanwhile is seen by the next check.
    const state = (await this.#port.glance?.(table))?.state;
    if (state !== undefined && state === this.#right.get(table)) return [];
    const chains = await inSlices(fixedChains(table, wanted), this.#options);
    const listed = await this.#port.texts(table, [...new Set(chains.map(({ chain }) => chain))]);
    const found: Found[] = [];
    for (const chain of chains) {
      const texts = listed.get(chain.chain);
      const difference = await inSlices(chainDifference(chain, texts, this.#port.family), this.#options);
      if (difference !== undefined) found.push({ table, chain, texts, difference });
    }
    if (found.length === 0 && state !== undefined) this.#right.set(table, state);
    return found;
  }

  /** @returns false: it takes a full sync */
  async #repair({ table, chain: { chain, rules, last, isOurs }, texts }: Found): Promise<boolean> {
    if (texts === undefined) return false;
    const { family } = this.#port;
    const existing = () => texts.map((text) => readRule(text, 0, family));
    const commands = isOurs
      ? fillChains([{ chain, rules: [...rules, ...last] }])
      : repairJumps(chain, { first: rules }, existing());
    try {
      await this.#port.restore(payloadText(restoreLines([{ table, commands }]), this.#options.turn));
      return true;
    } catch (error) {
      const reason = errorText(error);
      this.#options.onProblem(
        `another program changed ${chain} in the ${table} table of ${family}, and restoring only that failed; starting a full sync: ${reason}`,
      );
      return false;
    }
  }
}

type EndingTarget = NonNullable<Rule["target"]>["kind"];

/** After a rule with such a target and without a condition no packet meets the rules behind it. */
const ENDS: ReadonlySet<EndingTarget> = new Set<EndingTarget>([
  "accept",
  "dnat",
  "drop",
  "goto",
  "masquerade",
  "redirect",
  "reject",
  "return",
]);

/**
 * Compares a chain with what it must hold. Rules of other programs are ignored, unless one of them ends a chain of ours
 * before our last rule. Yields after each rule.
 *
 * @param found its rules as the tools print them; undefined: there is no such chain
 * @returns in words what differs; undefined: nothing
 */
function* chainDifference(
  { rules, last, isOurs }: FixedChain,
  found: readonly string[] | undefined,
  family: IPFamily,
): Generator<void, string | undefined> {
  if (found === undefined) return "is not there";
  const wanted = new Map<string, Rule>();
  for (const rule of [...rules, ...last]) {
    wanted.set(renderRule(rule), rule);
    yield;
  }
  const known = yield* knownRules(found, wanted, family);
  const present = new Set(known.filter((text) => text !== undefined));
  if (present.size < wanted.size) return "lacks rules";
  if (!isOurs || present.size === 0) return undefined;
  const order = [...present];
  if (last.some((rule, at) => renderRule(rule) !== order[order.length - last.length + at])) {
    return "has its rules in another order";
  }
  const end = known.indexOf(order.at(-1));
  const isEnded = found.slice(0, end).some((text, at) => known[at] === undefined && ends(readRule(text, 0, family)));
  return isEnded ? "has a rule of another program that ends it before its own rules" : undefined;
}

/**
 * For each rule found the text of the wanted one that it is; undefined: it is not ours. The texts are nearly always
 * equal; where one is missing, another version of the tools may have printed the same rule in another way.
 */
function* knownRules(
  found: readonly string[],
  wanted: ReadonlyMap<string, Rule>,
  family: IPFamily,
): Generator<void, readonly (string | undefined)[]> {
  const texts = new Set(found);
  const byKey = new Map<string, string>();
  for (const [text, rule] of wanted) {
    if (!texts.has(text)) byKey.set(ruleKey(rule), text);
    yield;
  }
  const known: (string | undefined)[] = [];
  for (const text of found) {
    const inOtherWords = () => (byKey.size === 0 ? undefined : byKey.get(ruleKey(readRule(text, 0, family))));
    known.push(wanted.has(text) ? text : inOtherWords());
    yield;
  }
  return known;
}

function ends({ source, destination, inInterface, outInterface, protocol, fragment, matches, target }: Rule): boolean {
  if (target === undefined || !ENDS.has(target.kind)) return false;
  const conditions = [source, destination, inInterface, outInterface, protocol, fragment];
  return conditions.every((one) => one === undefined) && matches.every(({ kind }) => kind === "comment");
}

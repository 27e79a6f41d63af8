import { errorText, inSlices } from "@fairlead/base";
import type { Difference } from "@fairlead/core";
import { payloadText, readRule, repairJumps, restoreLines, type Table } from "@fairlead/netfilter";
import { chainDifference } from "./chain-difference.ts";
import type { ResolvedOptions } from "./options.ts";
import { fillChains } from "./plan/commands.ts";
import { type FixedChain, fixedChains, type Wanted } from "./plan/fixed.ts";
import type { RulesPort } from "./port.ts";

const TABLES = ["mangle", "filter", "nat"] as const satisfies readonly Table[];

/** A chain that differs. */
interface Found {
  readonly table: Table;
  readonly chain: FixedChain;
  /** Its rules as the tools print them; undefined: it is not there. */
  readonly texts: readonly string[] | undefined;
  readonly difference: string;
}

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

import { LazySaveParser, type SavedRules } from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import { detectVariant } from "../iptables/detect.ts";
import type { Variant } from "../iptables/variant.ts";
import type { Runner } from "../runner/runner.ts";
import { createLegacyState } from "./legacy-state.ts";

/** The chain of nat that every service proxy has, in every mode with rules of iptables. */
const OF_PROXIES = "KUBE-SERVICES";
/** Milliseconds that a listing of very many rules may take. */
const LISTING_MS = 120_000;
/** Characters of a listing that may be kept: the rules of ipvs mode, or those of few services. */
const MOST_KEPT = 1_000_000;
/**
 * How often a listing may be given. Rules of the legacy variant that changed while they were listed, and changed back
 * before they were asked about again, would be taken for what was listed.
 */
const MOST_OFTEN = 30;

interface Kept {
  readonly state: string;
  readonly rules: SavedRules;
  given: number;
}

/** Lists the rules of iptables, by a process only where they may have changed since. */
export class RulesReader {
  readonly #runner: Runner;
  readonly #generation: () => Promise<number>;
  #variant: Promise<Variant> | undefined;
  /** In which families there was a proxy's chain at the last listing. */
  readonly #served = new Set<IPFamily>();
  readonly #kept = new Map<IPFamily, Kept>();
  readonly #legacyState = { IPv4: createLegacyState("IPv4"), IPv6: createLegacyState("IPv6") } as const;

  /** @param generation the number that each transaction of nf_tables raises */
  constructor(runner: Runner, generation: () => Promise<number>) {
    this.#runner = runner;
    this.#generation = generation;
  }

  /** @throws CommandError when they cannot be listed */
  async rules(family: IPFamily): Promise<SavedRules> {
    const state = await this.#state(family);
    const kept = this.#kept.get(family);
    if (kept !== undefined && kept.state === state && kept.given < MOST_OFTEN) {
      kept.given += 1;
      return kept.rules;
    }
    this.#kept.delete(family);
    const { rules, characters } = await this.#list(family);
    const isLarge = characters > MOST_KEPT;
    if (state !== undefined && !isLarge && this.#served.size > 0 && state === (await this.#state(family)))
      this.#kept.set(family, { state, rules, given: 0 });
    return rules;
  }

  /** undefined: the host uses legacy iptables, which have none. */
  async generation(): Promise<number | undefined> {
    return (await this.#used()) === "nft" ? this.#generation() : undefined;
  }

  async #list(family: IPFamily): Promise<{ readonly rules: SavedRules; readonly characters: number }> {
    const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${await this.#used()}-save`;
    const parser = new LazySaveParser({ family });
    let characters = 0;
    for await (const piece of this.#runner.stream([tool], { timeoutMs: LISTING_MS })) {
      characters += piece.length;
      parser.push(piece);
    }
    const rules = parser.end();
    if (rules.get("nat")?.chains.has(OF_PROXIES) === true) this.#served.add(family);
    else this.#served.delete(family);
    // Where there is nothing yet, which variant the host uses is to be reported later.
    if (this.#served.size === 0) this.#variant = undefined;
    return { rules, characters };
  }

  #used(): Promise<Variant> {
    this.#variant ??= detectVariant(this.#runner);
    return this.#variant;
  }

  /** The same twice: no program changed the rules in between. Undefined: unknown. */
  async #state(family: IPFamily): Promise<string | undefined> {
    if ((await this.#used()) === "legacy") return this.#legacyState[family]();
    return this.#generation().then(String, () => undefined);
  }
}

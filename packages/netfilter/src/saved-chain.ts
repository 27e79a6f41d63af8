import { atLine, parseRuleText } from "./line.ts";
import type { ChainState, IPFamily, Rule } from "./rule.ts";

/** A chain as it stands in a listing. Its rules are read when they are first asked for: most packets reach few of many. */
export interface SavedChain extends ChainState {
  /**
   * @throws RuleParseError for a rule that can't be read, when the rules are first asked for
   */
  readonly rules: readonly Rule[];
  /** The rules' text without `-A CHAIN `, in their order. */
  readonly texts: readonly string[];
  /** The line of each rule in the listing, from 1. */
  readonly lines: readonly number[];
}

/** A chain that is put together from the text of its rules. */
export class TextChain implements SavedChain {
  readonly name: string;
  readonly policy?: "ACCEPT" | "DROP";
  readonly texts: string[] = [];
  readonly lines: number[] = [];
  readonly #family: IPFamily;
  #rules: readonly Rule[] | undefined;

  constructor({ name, policy }: Omit<ChainState, "rules">, family: IPFamily) {
    this.name = name;
    if (policy !== undefined) this.policy = policy;
    this.#family = family;
  }

  /** @param text the rule without `-A CHAIN ` */
  add(text: string, line: number): void {
    this.texts.push(text);
    this.lines.push(line);
  }

  get rules(): readonly Rule[] {
    this.#rules ??= this.texts.map((text, at) =>
      atLine(this.lines[at] ?? 0, `-A ${this.name} ${text}`, () => parseRuleText(text, 0, this.#family)),
    );
    return this.#rules;
  }
}

import { atLine, parseRuleText } from "./line.ts";
import type { ChainState, IPFamily, Rule } from "./rule.ts";
import { type RuleBlock, ruleTexts } from "./rule-blocks.ts";

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
  /**
   * One rule of `rules`, without reading the others; undefined: there are not so many.
   *
   * @throws RuleParseError when it can't be read
   */
  ruleAt(index: number): Rule | undefined;
  /** Whether another chain of this name has the same texts; tells most of those that have without cutting them apart. */
  hasTextsOf(other: SavedChain): boolean;
}

/** A chain that is put together from the text of its rules. */
export class TextChain implements SavedChain {
  readonly name: string;
  readonly policy?: "ACCEPT" | "DROP";
  readonly #family: IPFamily;
  readonly #blocks: RuleBlock[] = [];
  #texts: readonly string[] | undefined;
  /** Those read so far. */
  #read: (Rule | undefined)[] = [];
  #rules: readonly Rule[] | undefined;

  constructor({ name, policy }: Omit<ChainState, "rules">, family: IPFamily) {
    this.name = name;
    if (policy !== undefined) this.policy = policy;
    this.#family = family;
  }

  /** @param block rules of this chain, which come after those that it has */
  add(block: RuleBlock): void {
    this.#blocks.push(block);
    this.#forget();
  }

  /**
   * @param position from 1
   * @param text the rule without `-A CHAIN `, of no line of any listing
   */
  insert(position: number, text: string): void {
    const texts = this.texts.toSpliced(position - 1, 0, text);
    const lines = texts.map((one) => `-A ${this.name} ${one}\n`).join("");
    this.#blocks.splice(0, this.#blocks.length, {
      text: lines,
      from: 0,
      to: lines.length,
      line: 1,
      lines: texts.length,
    });
    this.#forget();
  }

  #forget(): void {
    this.#texts = undefined;
    this.#rules = undefined;
    this.#read = [];
  }

  get texts(): readonly string[] {
    this.#texts ??= this.#blocks.flatMap((block) => ruleTexts(this.name, block));
    return this.#texts;
  }

  get lines(): readonly number[] {
    return this.#blocks.flatMap(({ line, lines }) => Array.from({ length: lines }, (_, at) => line + at));
  }

  get rules(): readonly Rule[] {
    this.#rules ??= this.texts.map((text, at) => this.#read[at] ?? this.#parse(text, at));
    return this.#rules;
  }

  ruleAt(index: number): Rule | undefined {
    const text = this.texts[index];
    if (text === undefined) return undefined;
    this.#read[index] ??= this.#parse(text, index);
    return this.#read[index];
  }

  #parse(text: string, index: number): Rule {
    return atLine(this.#lineOf(index), `-A ${this.name} ${text}`, () => parseRuleText(text, 0, this.#family));
  }

  #lineOf(index: number): number {
    let before = 0;
    for (const { line, lines } of this.#blocks) {
      if (index < before + lines) return line + index - before;
      before += lines;
    }
    return 0;
  }

  hasTextsOf(other: SavedChain): boolean {
    if (other instanceof TextChain && isSameText(this.#blocks, other.#blocks)) return true;
    const { texts } = other;
    return this.texts.length === texts.length && this.texts.every((text, at) => text === texts[at]);
  }
}

function isSameText([a, ...more]: readonly RuleBlock[], [b, ...others]: readonly RuleBlock[]): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (more.length + others.length > 0 || a.to - a.from !== b.to - b.from) return false;
  return a.text.slice(a.from, a.to) === b.text.slice(b.from, b.to);
}

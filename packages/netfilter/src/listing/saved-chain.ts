import type { ChainState, IPFamily, Rule } from "../rule/rule.ts";
import { atLine, parseRuleText } from "../text/line.ts";
import { type RuleBlock, ruleLines, ruleTexts } from "./rule-blocks.ts";

/**
 * A chain as it stands in a listing. Its rules are read when they are first asked for: most packets reach few of many.
 */
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
  /**
   * Whether another chain of this name has the same texts; tells most of those that have without cutting them apart.
   */
  hasTextsOf(other: SavedChain): boolean;
}

/**
 * A chain that is put together from the text of its rules. Most are never asked for them, so it holds little until
 * then.
 */
export class TextChain implements SavedChain {
  /** The chain's name. */
  readonly name: string;
  readonly policy?: "ACCEPT" | "DROP";
  readonly #family: IPFamily;
  /** Rules of a chain stand together: more than one block is rare. */
  #blocks: RuleBlock | readonly RuleBlock[] = NONE;
  #asked: ParsedRules | undefined;

  constructor({ name, policy }: Omit<ChainState, "rules">, family: IPFamily) {
    this.name = name;
    if (policy !== undefined) this.policy = policy;
    this.#family = family;
  }

  /**
   * Appends rules.
   *
   * @param block rules of this chain, which come after those that it has
   */
  add(block: RuleBlock): void {
    this.#blocks = this.#blocks === NONE ? block : [...this.#all, block];
    this.#asked = undefined;
  }

  /**
   * Puts a rule at a position.
   *
   * @param position from 1
   * @param text the rule without `-A CHAIN `
   * @param line of the payload that it stands in
   */
  insert(position: number, text: string, line: number): void {
    const rules = this.texts.map((one, at) => ({ text: one, line: this.lines[at] ?? line }));
    this.#blocks = rules.toSpliced(position - 1, 0, { text, line }).map((rule) => {
      const whole = `-A ${this.name} ${rule.text}\n`;
      return { text: whole, from: 0, to: whole.length, line: rule.line, lines: 1 };
    });
    this.#asked = undefined;
  }

  get #all(): readonly RuleBlock[] {
    return "text" in this.#blocks ? [this.#blocks] : this.#blocks;
  }

  #ask(): ParsedRules {
    this.#asked ??= { texts: this.#all.flatMap((block) => ruleTexts(this.name, block)), read: [], rules: undefined };
    return this.#asked;
  }

  get texts(): readonly string[] {
    return this.#ask().texts;
  }

  get lines(): readonly number[] {
    return this.#all.flatMap((block) => ruleLines(block, ruleTexts(this.name, block)));
  }

  get rules(): readonly Rule[] {
    const asked = this.#ask();
    asked.rules ??= asked.texts.map((text, at) => asked.read[at] ?? this.#parse(text, at));
    return asked.rules;
  }

  ruleAt(index: number): Rule | undefined {
    const { texts, read } = this.#ask();
    const text = texts[index];
    if (text === undefined) return undefined;
    read[index] ??= this.#parse(text, index);
    return read[index];
  }

  #parse(text: string, index: number): Rule {
    try {
      return parseRuleText(text, 0, this.#family);
    } catch (error) {
      // Its line costs a walk through the chain, and most rules can be read.
      return atLine(this.lines[index] ?? 0, `-A ${this.name} ${text}`, () => {
        throw error;
      });
    }
  }

  hasTextsOf(other: SavedChain): boolean {
    if (other instanceof TextChain && isSameText(this.#blocks, other.#blocks)) return true;
    const { texts } = other;
    return this.texts.length === texts.length && this.texts.every((text, at) => text === texts[at]);
  }
}

const NONE: readonly RuleBlock[] = [];

/** What is known of a chain's rules once a caller has asked for them. */
interface ParsedRules {
  readonly texts: readonly string[];
  /** Those read so far. */
  readonly read: (Rule | undefined)[];
  rules: readonly Rule[] | undefined;
}

function isSameText(a: RuleBlock | readonly RuleBlock[], b: RuleBlock | readonly RuleBlock[]): boolean {
  if (!("text" in a && "text" in b)) return a === b;
  return a.to - a.from === b.to - b.from && a.text.slice(a.from, a.to) === b.text.slice(b.from, b.to);
}

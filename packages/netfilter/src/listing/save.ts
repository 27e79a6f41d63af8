import type { ChainState, IPFamily, Rule, RuleSet, Table, TableState } from "../rule/rule.ts";
import { atLine, parseRuleText, readRule } from "../text/line.ts";
import { type RuleBlock, ruleLines, ruleTexts } from "./rule-blocks.ts";
import { type ChainSink, SaveReader } from "./save-reader.ts";
import { type SavedChain, TextChain } from "./saved-chain.ts";

/** How a save is read. */
export interface SaveOptions {
  /** Decides the defaults that the text leaves out (reject type, mask of recent). Default: IPv4. */
  readonly family?: IPFamily;
  /**
   * What can't be read within a table stops nothing, as it may be another program's: a rule is kept as its text (a
   * match of kind "unreadable"), other lines are passed over. Default: it is an error.
   */
  readonly lenient?: boolean;
  /** Whose rules to keep; the others are passed over unread, their chains kept without rules. Default: all. */
  readonly keepRules?: (table: Table, chain: string) => boolean;
}

/** A listing whose rules are read when they are first asked for. */
export type SavedRules = ReadonlyMap<Table, SavedTable>;

export interface SavedTable extends TableState {
  /** Its chains by name, in the order of the text. */
  readonly chains: ReadonlyMap<string, SavedChain>;
}

/**
 * Reads what iptables-save or ip6tables-save prints, of the legacy or the nft variant, with or without -c. Comment
 * lines and counters are dropped; matches and targets without a type are kept word for word.
 *
 * @param input the text, whole or in pieces
 * @throws RuleParseError with the line; also when the text ends within a table, as a cut-off listing does
 */
export function parseSave(input: string | Iterable<string>, options: SaveOptions = {}): RuleSet {
  const parser = new SaveParser(options);
  for (const chunk of typeof input === "string" ? [input] : input) parser.push(chunk);
  return parser.end();
}

/** `parseSave` for text that arrives bit by bit, as from a pipe. */
export class SaveParser {
  readonly #reader: SaveReader<EagerChain>;

  constructor({ family = "IPv4", keepRules = () => true, lenient = false }: SaveOptions = {}) {
    const read = lenient ? readRule : parseRuleText;
    this.#reader = new SaveReader(
      (declared, table) =>
        new EagerChain(declared, keepRules(table, declared.name) ? (text) => read(text, 0, family) : undefined),
      { lenient },
    );
  }

  /** @throws RuleParseError */
  push(chunk: string): void {
    this.#reader.push(chunk);
  }

  /** @throws RuleParseError when a table was begun and not committed */
  end(): RuleSet {
    const tables = this.#reader.end();
    return new Map([...tables].map(([table, { chains }]) => [table, { table, chains: states(chains) }]));
  }
}

function states(chains: ReadonlyMap<string, EagerChain>): ReadonlyMap<string, ChainState> {
  return new Map([...chains].map(([name, { state }]) => [name, state]));
}

/**
 * `SaveParser` for large listings of which few rules are looked at: they are sorted by chain, and each is read when it
 * is first asked for. Knows the line of each rule.
 */
export class LazySaveParser {
  readonly #reader: SaveReader<TextChain>;

  constructor({ family = "IPv4" }: Pick<SaveOptions, "family"> = {}) {
    this.#reader = new SaveReader((declared) => new TextChain(declared, family));
  }

  /** @throws RuleParseError for a line that is neither a table, a chain, a rule nor COMMIT */
  push(chunk: string): void {
    this.#reader.push(chunk);
  }

  /** @throws RuleParseError when a table was begun and not committed */
  end(): SavedRules {
    return this.#reader.end();
  }
}

class EagerChain implements ChainSink {
  readonly state: ChainState;
  readonly #rules: Rule[] = [];
  readonly #read: ((text: string) => Rule) | undefined;

  /** @param read undefined: rules are passed over */
  constructor(declared: Omit<ChainState, "rules">, read: ((text: string) => Rule) | undefined) {
    this.state = { ...declared, rules: this.#rules };
    this.#read = read;
  }

  add(block: RuleBlock): void {
    const read = this.#read;
    if (read === undefined) return;
    const { name } = this.state;
    const texts = ruleTexts(name, block);
    const lines = ruleLines(block, texts);
    for (const [at, text] of texts.entries()) {
      this.#rules.push(atLine(lines[at] ?? block.line, `-A ${name} ${text}`, () => read(text)));
    }
  }
}

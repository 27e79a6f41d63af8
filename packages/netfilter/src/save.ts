import { atLine, parseRuleText } from "./line.ts";
import type { ChainState, IPFamily, Rule, RuleSet, Table, TableState } from "./rule.ts";
import { type RuleBlock, ruleTexts } from "./rule-blocks.ts";
import { type ChainSink, SaveReader } from "./save-reader.ts";
import { type SavedChain, TextChain } from "./saved-chain.ts";

export interface SaveOptions {
  /** Decides the defaults that the text leaves out (reject type, mask of recent). Default: IPv4. */
  readonly family?: IPFamily;
  /** Whose rules to keep; the others are passed over unread, their chains kept without rules. Default: all. */
  readonly keepRules?: (table: Table, chain: string) => boolean;
}

/** A listing whose rules are read when they are first asked for. */
export type SavedRules = ReadonlyMap<Table, SavedTable>;

export interface SavedTable extends TableState {
  readonly chains: ReadonlyMap<string, SavedChain>;
}

/**
 * Reads what iptables-save or ip6tables-save prints, of the legacy or the nft variant, with or without -c. Comment lines
 * and counters are dropped; matches and targets without a type are kept word for word.
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

  constructor({ family = "IPv4", keepRules = () => true }: SaveOptions = {}) {
    this.#reader = new SaveReader((declared, table) => {
      return new EagerChain(declared, family, keepRules(table, declared.name));
    });
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
 * `SaveParser` for large listings of which few rules are looked at: they are sorted by chain, and each is read when it is
 * first asked for. Knows the line of each rule.
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
  readonly #family: IPFamily;
  readonly #keep: boolean;

  constructor(declared: Omit<ChainState, "rules">, family: IPFamily, keep: boolean) {
    this.state = { ...declared, rules: this.#rules };
    this.#family = family;
    this.#keep = keep;
  }

  add(block: RuleBlock): void {
    if (!this.#keep) return;
    const { name } = this.state;
    for (const [at, text] of ruleTexts(name, block).entries()) {
      const rule = () => parseRuleText(text, 0, this.#family);
      this.#rules.push(atLine(block.line + at, `-A ${name} ${text}`, rule));
    }
  }
}

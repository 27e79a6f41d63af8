/** The output of iptables-save: tables, chains and rules, parsed when they are asked for. */

import { Problem } from "../rule/options.ts";
import type { ChainState, IPFamily, Rule, RuleSet, Table, TableState } from "../rule/rule.ts";
import { atLine, parseChainLine, parseRuleText, parseTableLine, readRule } from "../text/lines.ts";
import { BlockScanner, type RuleBlock, ruleLines, ruleTexts } from "./rule-blocks.ts";

/** How a save is read. */
export interface SaveOptions {
  /** Decides the defaults that the text leaves out (reject type, mask of recent). Default: IPv4. */
  readonly family?: IPFamily;
  /**
   * What can't be read within a table stops nothing, as it may be another program's: a rule is kept as its text (a
   * match of kind "unreadable"), other lines are passed over. Default: it is an error.
   */
  readonly lenient?: boolean;
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
  readonly #reader: SaveReader;

  constructor({ family = "IPv4", lenient = false }: SaveOptions = {}) {
    this.#reader = new SaveReader(family, lenient);
  }

  /** @throws RuleParseError for a line that is neither a table, a chain, a rule nor COMMIT */
  push(chunk: string): void {
    this.#reader.push(chunk);
  }

  /** @throws RuleParseError when a table was begun and not committed, and for a rule that cannot be read */
  end(): RuleSet {
    const tables = this.#reader.end();
    return new Map(Array.from(tables, ([table, { chains }]) => [table, { table, chains: states(chains) }]));
  }
}

/**
 * `SaveParser` for large listings of which few rules are looked at: they are sorted by chain, and each is read when it
 * is first asked for. Knows the line of each rule.
 */
export class LazySaveParser {
  readonly #reader: SaveReader;

  constructor({ family = "IPv4" }: Pick<SaveOptions, "family"> = {}) {
    this.#reader = new SaveReader(family, false);
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
  /** Whether another chain of this name has the same texts; for most of those that have, it knows without parsing. */
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
  readonly #lenient: boolean;
  /** Rules of a chain stand together: more than one block is rare. */
  #blocks: RuleBlock | readonly RuleBlock[] = NONE;
  #asked: ParsedRules | undefined;

  /** @param lenient a rule that can't be read is its text */
  constructor({ name, policy }: Omit<ChainState, "rules">, family: IPFamily, lenient = false) {
    this.name = name;
    if (policy !== undefined) this.policy = policy;
    this.#family = family;
    this.#lenient = lenient;
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
    if (this.#lenient) return readRule(text, 0, this.#family);
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

function states(chains: ReadonlyMap<string, SavedChain>): ReadonlyMap<string, ChainState> {
  return new Map(
    Array.from(chains, ([name, { policy, rules }]) => [name, { name, ...(policy !== undefined && { policy }), rules }]),
  );
}

interface ReadTable {
  readonly table: Table;
  readonly chains: Map<string, TextChain>;
}

class SaveReader {
  readonly #family: IPFamily;
  readonly #lenient: boolean;
  readonly #scanner: BlockScanner;
  readonly #tables = new SavedTables();

  /** @param lenient what can't be read within a table is passed over */
  constructor(family: IPFamily, lenient: boolean) {
    this.#family = family;
    this.#lenient = lenient;
    const sink = {
      rules: (chain: string, block: RuleBlock) => this.#addRules(chain, block),
      line: (text: string, line: number) => this.#readLine(text, line),
    };
    this.#scanner = new BlockScanner(sink, { lenient });
  }

  push(chunk: string): void {
    this.#scanner.push(chunk);
  }

  end(): ReadonlyMap<Table, ReadTable> {
    this.#scanner.end();
    return atLine(this.#scanner.line, "", () => this.#tables.end());
  }

  /** Without a function for each of very many lines. */
  #readLine(text: string, line: number): void {
    try {
      if (text.startsWith(":")) this.#addChain(text);
      else this.#tables.read(text);
    } catch (error) {
      if (this.#lenient && this.#tables.open !== undefined && !text.startsWith("*")) return;
      atLine(line, text, () => {
        throw error;
      });
    }
  }

  #addChain(line: string): void {
    const { chains } = this.#tables.current;
    const declared = parseChainLine(line);
    if (this.#lenient && chains.has(declared.name)) return;
    chains.set(declared.name, new TextChain(declared, this.#family, this.#lenient));
  }

  #addRules(name: string, block: RuleBlock): void {
    const chain = this.#tables.open?.chains.get(name);
    if (chain !== undefined) chain.add(block);
    else if (!this.#lenient || this.#tables.open === undefined)
      atLine(block.line, firstLine(block), () => undeclared(this.#tables, name));
  }
}

/** @throws Problem for rules of a chain that the table has not got */
function undeclared(tables: SavedTables, name: string): never {
  tables.current;
  throw new Problem(`chain ${name} is not declared`);
}

function firstLine({ text, from, to }: RuleBlock): string {
  return text.slice(from, to).split(/\r?\n/, 1).join();
}

/** The tables of a listing, one after the other: `*nat`, what is in it, `COMMIT`. */
class SavedTables {
  readonly #done = new Map<Table, ReadTable>();
  #open: ReadTable | undefined;

  /**
   * Reads a line that is neither a chain nor a rule.
   *
   * @throws Problem
   */
  read(line: string): void {
    if (line === "" || line.startsWith("#")) return;
    if (line.startsWith("*")) this.#begin(parseTableLine(line));
    else if (line === "COMMIT") this.#commit();
    else throw new Problem("neither a table, a chain, a rule nor COMMIT");
  }

  /** The table that was begun and not committed, if any. */
  get open(): ReadTable | undefined {
    return this.#open;
  }

  /** @throws Problem when no table was begun */
  get current(): ReadTable {
    if (this.#open === undefined) throw new Problem("no table was begun");
    return this.#open;
  }

  /** @throws Problem when a table was begun and not committed */
  end(): ReadonlyMap<Table, ReadTable> {
    if (this.#open !== undefined) throw new Problem(`the text ends within table ${this.#open.table}`);
    return this.#done;
  }

  #begin(table: Table): void {
    if (this.#open !== undefined) throw new Problem(`table ${this.#open.table} is not committed yet`);
    if (this.#done.has(table)) throw new Problem(`duplicate table ${table}`);
    this.#open = { table, chains: new Map() };
  }

  #commit(): void {
    const open = this.current;
    this.#done.set(open.table, open);
    this.#open = undefined;
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

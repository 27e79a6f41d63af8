import { atLine, chainOf, parseChainLine, parseRuleText, parseTableLine, withoutCounters } from "./line.ts";
import { LineFeed } from "./lines.ts";
import { Problem } from "./problem.ts";
import type { ChainState, IPFamily, Rule, RuleSet, Table, TableState } from "./rule.ts";

export interface SaveOptions {
  /** Decides the defaults that the text leaves out (reject type, mask of recent). Default: IPv4. */
  readonly family?: IPFamily;
  /** Whose rules to keep; the others are passed over unread, their chains kept without rules. Default: all. */
  readonly keepRules?: (table: Table, chain: string) => boolean;
}

interface MutableChain extends ChainState {
  readonly rules: Rule[];
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
  readonly #family: IPFamily;
  readonly #keepRules: (table: Table, chain: string) => boolean;
  readonly #feed = new LineFeed();
  readonly #tables = new Map<Table, TableState>();
  #line = 0;
  #table: { readonly name: Table; readonly chains: Map<string, MutableChain> } | undefined;
  /** The chain of the last rule, whether its rules are kept: rules of a chain stand together. */
  #chain: MutableChain | undefined;
  #keep = true;

  constructor(options: SaveOptions = {}) {
    this.#family = options.family ?? "IPv4";
    this.#keepRules = options.keepRules ?? (() => true);
  }

  /** @throws RuleParseError */
  push(chunk: string): void {
    for (const line of this.#feed.push(chunk)) this.#read(line);
  }

  /** @throws RuleParseError when a table was begun and not committed */
  end(): RuleSet {
    for (const line of this.#feed.end()) this.#read(line);
    atLine(this.#line, "", () => {
      if (this.#table !== undefined) throw new Problem(`the text ends within table ${this.#table.name}`);
    });
    return this.#tables;
  }

  #read(line: string): void {
    this.#line += 1;
    if (line === "" || line.startsWith("#")) return;
    atLine(this.#line, line, () => this.#readLine(line));
  }

  #readLine(line: string): void {
    if (line.startsWith("*")) this.#begin(parseTableLine(line));
    else if (line.startsWith(":")) this.#addChain(line);
    else if (line === "COMMIT") this.#commit();
    else this.#addRule(withoutCounters(line));
  }

  #begin(name: Table): void {
    if (this.#table !== undefined) throw new Problem(`table ${this.#table.name} is not committed yet`);
    if (this.#tables.has(name)) throw new Problem(`table ${name} stands there twice`);
    this.#table = { name, chains: new Map() };
  }

  #current(): { readonly name: Table; readonly chains: Map<string, MutableChain> } {
    if (this.#table === undefined) throw new Problem("no table was begun");
    return this.#table;
  }

  #addChain(line: string): void {
    const chain = parseChainLine(line);
    this.#current().chains.set(chain.name, { ...chain, rules: [] });
  }

  #commit(): void {
    const { name, chains } = this.#current();
    this.#tables.set(name, { table: name, chains });
    this.#table = undefined;
    this.#chain = undefined;
  }

  #addRule(line: string): void {
    if (!line.startsWith("-A ")) throw new Problem("neither a table, a chain, a rule nor COMMIT");
    const { name: table, chains } = this.#current();
    const name = chainOf(line);
    if (this.#chain?.name !== name) {
      this.#chain = chains.get(name);
      this.#keep = this.#keepRules(table, name);
    }
    if (this.#chain === undefined) throw new Problem(`chain ${name} is not declared`);
    if (this.#keep) this.#chain.rules.push(parseRuleText(line, 3 + name.length, this.#family));
  }
}

import { atLine, chainOf, parseChainLine, parseTableLine, withoutCounters } from "./line.ts";
import { LineFeed } from "./lines.ts";
import { Problem } from "./problem.ts";
import type { ChainState, Table } from "./rule.ts";

/** What takes the rules of a chain. */
export interface TextSink {
  readonly name: string;
  /** @param text the rule without `-A CHAIN `; a Problem thrown here is told with its line */
  add(text: string, line: number): void;
}

interface ReadTable<Chain> {
  readonly table: Table;
  readonly chains: Map<string, Chain>;
}

/** Sorts the lines of iptables-save by table and chain. */
export class SaveReader<Chain extends TextSink> {
  readonly #open: (declared: Omit<ChainState, "rules">, table: Table) => Chain;
  readonly #feed = new LineFeed();
  readonly #tables = new Map<Table, ReadTable<Chain>>();
  #line = 0;
  #table: ReadTable<Chain> | undefined;
  /** The chain of the last rule: rules of a chain stand together. */
  #chain: Chain | undefined;

  constructor(open: (declared: Omit<ChainState, "rules">, table: Table) => Chain) {
    this.#open = open;
  }

  push(chunk: string): void {
    for (const line of this.#feed.push(chunk)) this.#read(line);
  }

  end(): ReadonlyMap<Table, ReadTable<Chain>> {
    for (const line of this.#feed.end()) this.#read(line);
    atLine(this.#line, "", () => {
      if (this.#table !== undefined) throw new Problem(`the text ends within table ${this.#table.table}`);
    });
    return this.#tables;
  }

  #read(line: string): void {
    this.#line += 1;
    try {
      this.#readLine(line);
    } catch (error) {
      atLine(this.#line, line, () => {
        throw error;
      });
    }
  }

  #readLine(line: string): void {
    if (line === "" || line.startsWith("#")) return;
    if (line.startsWith("*")) this.#begin(parseTableLine(line));
    else if (line.startsWith(":")) this.#addChain(line);
    else if (line === "COMMIT") this.#commit();
    else this.#addRule(withoutCounters(line));
  }

  #begin(table: Table): void {
    if (this.#table !== undefined) throw new Problem(`table ${this.#table.table} is not committed yet`);
    if (this.#tables.has(table)) throw new Problem(`table ${table} stands there twice`);
    this.#table = { table, chains: new Map() };
  }

  #current(): ReadTable<Chain> {
    if (this.#table === undefined) throw new Problem("no table was begun");
    return this.#table;
  }

  #addChain(line: string): void {
    const { table, chains } = this.#current();
    const declared = parseChainLine(line);
    chains.set(declared.name, this.#open(declared, table));
  }

  #commit(): void {
    const read = this.#current();
    this.#tables.set(read.table, read);
    this.#table = undefined;
    this.#chain = undefined;
  }

  #addRule(line: string): void {
    if (!line.startsWith("-A ")) throw new Problem("neither a table, a chain, a rule nor COMMIT");
    const { chains } = this.#current();
    const name = chainOf(line);
    if (this.#chain?.name !== name) this.#chain = chains.get(name);
    if (this.#chain === undefined) throw new Problem(`chain ${name} is not declared`);
    this.#chain.add(line.slice(4 + name.length), this.#line);
  }
}

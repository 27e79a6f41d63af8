import { atLine, parseChainLine, parseTableLine } from "./line.ts";
import { Problem } from "./problem.ts";
import type { ChainState, Table } from "./rule.ts";
import { BlockScanner, type RuleBlock } from "./rule-blocks.ts";

/** What takes the rules of a chain. */
export interface ChainSink {
  add(block: RuleBlock): void;
}

interface ReadTable<Chain> {
  readonly table: Table;
  readonly chains: Map<string, Chain>;
}

/** Sorts the rules of iptables-save by table and chain. */
export class SaveReader<Chain extends ChainSink> {
  readonly #open: (declared: Omit<ChainState, "rules">, table: Table) => Chain;
  readonly #scanner = new BlockScanner({
    rules: (chain, block) => this.#addRules(chain, block),
    line: (text, line) => this.#readLine(text, line),
  });
  readonly #tables = new Map<Table, ReadTable<Chain>>();
  #table: ReadTable<Chain> | undefined;

  constructor(open: (declared: Omit<ChainState, "rules">, table: Table) => Chain) {
    this.#open = open;
  }

  push(chunk: string): void {
    this.#scanner.push(chunk);
  }

  end(): ReadonlyMap<Table, ReadTable<Chain>> {
    this.#scanner.end();
    atLine(this.#scanner.line, "", () => {
      if (this.#table !== undefined) throw new Problem(`the text ends within table ${this.#table.table}`);
    });
    return this.#tables;
  }

  /** Without a function for each of very many lines. */
  #readLine(text: string, line: number): void {
    try {
      this.#read(text);
    } catch (error) {
      atLine(line, text, () => {
        throw error;
      });
    }
  }

  #read(line: string): void {
    if (line === "" || line.startsWith("#")) return;
    if (line.startsWith("*")) this.#begin(parseTableLine(line));
    else if (line.startsWith(":")) this.#addChain(line);
    else if (line === "COMMIT") this.#commit();
    else throw new Problem("neither a table, a chain, a rule nor COMMIT");
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
  }

  #addRules(name: string, block: RuleBlock): void {
    const chain = this.#table?.chains.get(name);
    if (chain !== undefined) chain.add(block);
    else atLine(block.line, firstLine(block), () => this.#refuse(name));
  }

  #refuse(name: string): never {
    this.#current();
    throw new Problem(`chain ${name} is not declared`);
  }
}

function firstLine({ text, from, to }: RuleBlock): string {
  return text.slice(from, to).split(/\r?\n/, 1).join();
}

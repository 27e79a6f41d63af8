import { Problem } from "../rule/problem.ts";
import type { ChainState, Table } from "../rule/rule.ts";
import { atLine, parseChainLine } from "../text/line.ts";
import { BlockScanner, type RuleBlock, type ScanOptions } from "./rule-blocks.ts";
import { SavedTables } from "./saved-tables.ts";

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
  readonly #lenient: boolean;
  readonly #scanner: BlockScanner;
  readonly #tables = new SavedTables<ReadTable<Chain>>((table) => ({ table, chains: new Map() }));

  /** @param lenient what can't be read within a table is passed over */
  constructor(
    open: (declared: Omit<ChainState, "rules">, table: Table) => Chain,
    { lenient = false }: ScanOptions = {},
  ) {
    this.#open = open;
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

  end(): ReadonlyMap<Table, ReadTable<Chain>> {
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
    const { table, chains } = this.#tables.current;
    const declared = parseChainLine(line);
    if (this.#lenient && chains.has(declared.name)) return;
    chains.set(declared.name, this.#open(declared, table));
  }

  #addRules(name: string, block: RuleBlock): void {
    const chain = this.#tables.open?.chains.get(name);
    if (chain !== undefined) chain.add(block);
    else if (!this.#lenient || this.#tables.open === undefined)
      atLine(block.line, firstLine(block), () => undeclared(this.#tables, name));
  }
}

/** @throws Problem for rules of a chain that the table has not got */
function undeclared(tables: SavedTables<unknown>, name: string): never {
  tables.current;
  throw new Problem(`chain ${name} is not declared`);
}

function firstLine({ text, from, to }: RuleBlock): string {
  return text.slice(from, to).split(/\r?\n/, 1).join();
}

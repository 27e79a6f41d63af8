import {
  atLine,
  BlockScanner,
  parseChainLine,
  parseTableLine,
  type RuleBlock,
  type SavedRules,
  type Table,
  TextChain,
} from "@fairlead/netfilter";

/**
 * What a payload of iptables-restore makes of empty tables. Rules stay text until a caller asks for
 * them. A step is a piece of the payload.
 *
 * @param payload in pieces, of the kind that the backends write: chains, -A and -I with a number, nothing that deletes
 * @throws RangeError for other commands, RuleParseError for what is no table or chain
 */
export function* restored(payload: Iterable<string>, family: "IPv4" | "IPv6"): Generator<void, SavedRules, void> {
  const tables = new RestoredTables(family);
  const scanner = new BlockScanner({
    rules: (chain, block) => tables.append(chain, block),
    line: (text, line) => atLine(line, text, () => tables.read(text, line)),
  });
  for (const piece of payload) {
    scanner.push(piece);
    yield;
  }
  scanner.end();
  return tables.all;
}

type Chains = Map<string, TextChain>;

class RestoredTables {
  readonly all = new Map<Table, { readonly table: Table; readonly chains: Chains }>();
  readonly #family: "IPv4" | "IPv6";
  #chains: Chains = new Map();

  constructor(family: "IPv4" | "IPv6") {
    this.#family = family;
  }

  append(chain: string, block: RuleBlock): void {
    this.#chain(chain).add(block);
  }

  read(line: string, number: number): void {
    if (line === "" || line === "COMMIT" || line.startsWith("#")) return;
    if (line.startsWith("*")) this.#begin(parseTableLine(line));
    else if (line.startsWith(":")) this.#declare(line);
    else this.#insert(line, number);
  }

  #begin(table: Table): void {
    const known = this.all.get(table) ?? { table, chains: new Map() };
    this.all.set(table, known);
    this.#chains = known.chains;
  }

  #declare(line: string): void {
    const declared = parseChainLine(line);
    this.#chains.set(declared.name, new TextChain(declared, this.#family));
  }

  #insert(line: string, number: number): void {
    const { chain, position, rule } = /^-I (?<chain>\S+) (?<position>\d+) (?<rule>.*)$/.exec(line)?.groups ?? {};
    if (chain === undefined) throw new RangeError(`this payload does more than fill empty tables: ${line}`);
    this.#chain(chain).insert(Number(position), rule ?? "", number);
  }

  /** Built-in chains are there without a word. */
  #chain(name: string): TextChain {
    const known = this.#chains.get(name);
    if (known !== undefined) return known;
    const chain = new TextChain({ name, policy: "ACCEPT" }, this.#family);
    this.#chains.set(name, chain);
    return chain;
  }
}

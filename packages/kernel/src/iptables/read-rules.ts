import { type ChainState, parseRestore, type Rule, type Table, type TableState } from "@fairlead/netfilter";
import { builtinChains } from "./client.ts";

/** Takes in what iptables-save prints, in pieces of whole lines, and gives the table. */
export class TableReader {
  readonly #table: Table;
  readonly #chains = new Map<string, { name: string; policy?: "ACCEPT" | "DROP"; rules: Rule[] }>();

  constructor(table: Table) {
    this.#table = table;
    for (const name of builtinChains[table]) this.#chains.set(name, { name, policy: "ACCEPT", rules: [] });
  }

  /** @param text whole lines, beginning with `:` or `-A`; others are not looked at */
  read(text: string): void {
    for (const { commands } of parseRestore(`*${this.#table}\n${text}\nCOMMIT\n`)) {
      for (const command of commands) {
        if (command.kind === "append") this.#chains.get(command.chain)?.rules.push(command.rule);
        if (command.kind === "chain") {
          const { chain: name, policy } = command;
          this.#chains.set(name, { name, ...(policy && { policy }), rules: [] });
        }
      }
    }
  }

  state(): TableState {
    const chains: ReadonlyMap<string, ChainState> = this.#chains;
    return { table: this.#table, chains };
  }
}

/** The rules of `-A` lines. */
export function readRules(table: Table, lines: readonly string[]): Rule[] {
  const rules: Rule[] = [];
  for (const { commands } of parseRestore(`*${table}\n${lines.join("\n")}\nCOMMIT\n`)) {
    for (const command of commands) if (command.kind === "append") rules.push(command.rule);
  }
  return rules;
}

import {
  BUILTIN_CHAINS,
  type ChainState,
  type IPFamily,
  type IptablesPort,
  type Table,
  type TableState,
} from "@fairlead/netfilter";
import type { ProgramTexts } from "./program-texts.ts";

/**
 * The iptables of a node without rules. What is restored goes into `texts` and changes
 * nothing. It is of the legacy variant, for which the backend makes one payload of everything.
 */
export function emptyRules(family: IPFamily, texts: ProgramTexts): IptablesPort {
  const program = family === "IPv4" ? "iptables-restore" : "ip6tables-restore";
  return {
    family,
    variant: "legacy",
    restore: (payload) => texts.add([program, "--noflush"], payload),
    save: async (table) => emptyTable(table),
    saveTables: async (tables) => new Map(tables.map((table) => [table, emptyTable(table)])),
    async *saveLines() {},
    chains: async (table) => new Set(BUILTIN_CHAINS[table]),
    texts: async () => new Map(),
    list: async (table, chain) => (BUILTIN_CHAINS[table].includes(chain) ? [] : undefined),
  };
}

function emptyTable(table: Table): TableState {
  const chains = BUILTIN_CHAINS[table].map((name): [string, ChainState] => [
    name,
    { name, policy: "ACCEPT", rules: [] },
  ]);
  return { table, chains: new Map(chains) };
}

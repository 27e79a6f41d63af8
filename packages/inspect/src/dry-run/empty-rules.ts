import type { IptablesPort } from "@fairlead/backend-iptables";
import type { IpvsPort } from "@fairlead/backend-ipvs";
import type { IPFamily } from "@fairlead/core";
import type { ChainState, Table, TableState } from "@fairlead/netfilter";
import type { ProgramTexts } from "./program-texts.ts";

const BUILTIN: Readonly<Record<Table, readonly string[]>> = {
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  raw: ["PREROUTING", "OUTPUT"],
  security: ["INPUT", "FORWARD", "OUTPUT"],
};

/**
 * The iptables of a node on which nobody has written a rule yet. What is restored goes into `texts` and changes
 * nothing. It is of the legacy variant, for which the backend makes one payload of everything.
 */
export function emptyRules(family: IPFamily, texts: ProgramTexts): IptablesPort & IpvsPort["rules"] {
  const program = family === "IPv4" ? "iptables-restore" : "ip6tables-restore";
  return {
    family,
    variant: "legacy",
    restore: (payload) => texts.add([program, "--noflush"], payload),
    save: async (table) => emptyTable(table),
    saveTables: async (tables) => new Map(tables.map((table) => [table, emptyTable(table)])),
    async *saveLines() {},
    chains: async (table) => new Set(BUILTIN[table]),
    texts: async () => new Map(),
    list: async (table, chain) => (BUILTIN[table].includes(chain) ? [] : undefined),
  };
}

function emptyTable(table: Table): TableState {
  const chains = BUILTIN[table].map((name): [string, ChainState] => [name, { name, policy: "ACCEPT", rules: [] }]);
  return { table, chains: new Map(chains) };
}

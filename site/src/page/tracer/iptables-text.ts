import { createIptablesBackend, type RulesPort } from "@fairlead/backend-iptables";
import type { ForwardingPlan } from "@fairlead/core";
import {
  BUILTIN_CHAINS,
  type ChainState,
  type Command,
  type IPFamily,
  type Payload,
  parseRestore,
  type Rule,
  renderRuleSet,
  type Table,
  type TableState,
} from "@fairlead/netfilter";

/** What iptables-save prints on a node that had no rules before Fairlead wrote the plan's. */
export async function iptablesText(plan: ForwardingPlan): Promise<string> {
  const payloads: string[] = [];
  await createIptablesBackend(emptyNode(plan.family, payloads)).sync(plan);
  const tables = new Map<Table, TableState>();
  for (const { table, commands } of parseRestore(payloads.join(""), { family: plan.family })) {
    tables.set(table, after(tables.get(table) ?? emptyTable(table), commands));
  }
  return [...renderRuleSet(tables)].join("");
}

/** A node without rules, which keeps what it is given. */
function emptyNode(family: IPFamily, payloads: string[]): RulesPort {
  return {
    family,
    variant: "legacy",
    restore: async (payload: Payload) => {
      for await (const piece of payload) payloads.push(piece);
    },
    save: async (table) => emptyTable(table),
    async *saveLines() {},
    chains: async (table) => new Set(BUILTIN_CHAINS[table]),
    list: async (table, chain) => (BUILTIN_CHAINS[table].includes(chain) ? [] : undefined),
    texts: async () => new Map(),
  };
}

function emptyTable(table: Table): TableState {
  const chains = BUILTIN_CHAINS[table].map((name): [string, ChainState] => [
    name,
    { name, policy: "ACCEPT", rules: [] },
  ]);
  return { table, chains: new Map(chains) };
}

/** The table after a transaction into an empty one: chains are made, rules appended and inserted. */
function after({ table, chains }: TableState, commands: readonly Command[]): TableState {
  const filled = new Map([...chains].map(([name, chain]) => [name, { ...chain, rules: [...chain.rules] }]));
  const rulesOf = (name: string): Rule[] => {
    const chain = filled.get(name) ?? { name, rules: [] };
    filled.set(name, chain);
    return chain.rules;
  };
  for (const command of commands) {
    const rules = rulesOf(command.chain);
    if (command.kind === "append") rules.push(command.rule);
    if (command.kind === "insert") rules.splice(command.position - 1, 0, command.rule);
  }
  return { table, chains: filled };
}

import { type SavedRules, type Table, TextChain } from "@fairlead/netfilter";

interface Chain {
  /** As iptables-save declares it: a policy, or -. */
  readonly policy: string;
  readonly rules: string[];
}

type Tables = Map<string, Map<string, Chain>>;

/**
 * What a payload of iptables-restore makes of empty tables. Rules stay the text that they are until somebody asks for them.
 *
 * @param payload of the kind that the backends write: chains, -A and -I with a number, nothing that deletes
 * @throws RangeError for other commands
 */
export function restored(payload: string, family: "IPv4" | "IPv6"): SavedRules {
  const tables: Tables = new Map();
  let table = new Map<string, Chain>();
  for (const line of payload.split("\n")) {
    if (line === "" || line === "COMMIT" || line.startsWith("#")) continue;
    if (line.startsWith("*")) table = tableOf(tables, line.slice(1));
    else read(line, table);
  }
  return new Map(
    [...tables].map(([name, chains]) => [tableName(name), { table: tableName(name), chains: built(chains, family) }]),
  );
}

function tableOf(tables: Tables, name: string): Map<string, Chain> {
  const known = tables.get(name) ?? new Map<string, Chain>();
  tables.set(name, known);
  return known;
}

function read(line: string, table: Map<string, Chain>): void {
  const [command = "", chain = ""] = line.split(" ", 2);
  if (command.startsWith(":")) {
    table.set(command.slice(1), { policy: chain, rules: [] });
    return;
  }
  const rest = line.slice(command.length + chain.length + 2);
  if (command === "-A") rulesOf(table, chain).push(rest);
  else if (command === "-I") insert(rulesOf(table, chain), rest);
  else throw new RangeError(`this payload does more than fill empty tables: ${line}`);
}

/** Built-in chains are there without a word. */
function rulesOf(table: Map<string, Chain>, name: string): string[] {
  const chain = table.get(name) ?? { policy: "ACCEPT", rules: [] };
  table.set(name, chain);
  return chain.rules;
}

function insert(rules: string[], rest: string): void {
  const space = rest.indexOf(" ");
  rules.splice(Number(rest.slice(0, space)) - 1, 0, rest.slice(space + 1));
}

function built(chains: ReadonlyMap<string, Chain>, family: "IPv4" | "IPv6"): ReadonlyMap<string, TextChain> {
  return new Map(
    [...chains].map(([name, { policy, rules }]) => {
      const chain = new TextChain(policy === "ACCEPT" || policy === "DROP" ? { name, policy } : { name }, family);
      // There is no text whose lines anybody could look up.
      for (const rule of rules) chain.add(rule, 0);
      return [name, chain];
    }),
  );
}

const TABLES: readonly Table[] = ["raw", "mangle", "nat", "filter", "security"];

function tableName(name: string): Table {
  const table = TABLES.find((one) => one === name);
  if (table === undefined) throw new RangeError(`there is no table ${name}`);
  return table;
}

import { LazySaveParser, type SavedRules } from "@fairlead/netfilter";

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
  const parser = new LazySaveParser({ family });
  for (const text of saved(tables)) parser.push(text);
  return parser.end();
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

function* saved(tables: Tables): Generator<string> {
  for (const [name, chains] of tables) {
    yield `*${name}\n`;
    for (const [chain, { policy }] of chains) yield `:${chain} ${policy} [0:0]\n`;
    for (const [chain, { rules }] of chains) for (const rule of rules) yield `-A ${chain} ${rule}\n`;
    yield "COMMIT\n";
  }
}

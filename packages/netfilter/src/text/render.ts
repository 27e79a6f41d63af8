import { checkChainName, checkInteger } from "../rule/check.ts";
import { RuleTextError } from "../rule/errors.ts";
import type { ChainFill, Command, CommandSource, RuleSet, Table, TableState } from "../rule/rule.ts";
import { ruleWords } from "./render-rule.ts";

/** Characters a piece of rendered text has at least, the last one apart. */
const CHUNK_LENGTH = 64 * 1024;

const TABLES: ReadonlySet<string> = new Set<Table>(["filter", "nat", "mangle", "raw", "security"]);

/**
 * One line of restore text, without its line end.
 *
 * @throws RuleTextError when a name or text in it could not be read back as the same command
 */
export function renderCommand(command: Command): string {
  const chain = checkChainName(command.chain);
  switch (command.kind) {
    case "chain":
      return `:${chain} ${command.policy ?? "-"} [0:0]`;
    case "append":
      return `-A ${chain}${ruleWords(command.rule)}`;
    case "insert":
      if (command.position < 1) throw new RuleTextError("position", String(command.position), "must be 1 or more");
      return `-I ${chain} ${checkInteger("position", command.position, 0x7fffffff)}${ruleWords(command.rule)}`;
    case "delete":
      return `-D ${chain}${ruleWords(command.rule)}`;
    case "flush":
      return `-F ${chain}`;
    case "delete-chain":
      return `-X ${chain}`;
  }
}

/**
 * The lines of a chain's rules, without the last line end; "" where there are none.
 *
 * @throws RuleTextError as `renderCommand`
 */
export function renderFill({ chain, rules, make }: ChainFill): string {
  const name = checkChainName(chain);
  const append = `-A ${name}`;
  let text = make ? `:${name} - [0:0]` : "";
  for (const rule of rules) text += `${text === "" ? "" : "\n"}${append}${ruleWords(rule)}`;
  return text;
}

/**
 * Restore text of one table, in pieces of about 64 KiB: the caller may pause between them.
 *
 * @throws RuleTextError as `renderCommand`, from within the iteration
 */
export function* renderTable(source: CommandSource): Generator<string, void, undefined> {
  let text = `*${checkTable(source.table)}\n`;
  for (const command of source.commands) {
    text += `${renderCommand(command)}\n`;
    if (text.length >= CHUNK_LENGTH) {
      yield text;
      text = "";
    }
  }
  yield `${text}COMMIT\n`;
}

/** Restore text of several tables, as `renderTable`. */
export function* renderTables(sources: Iterable<CommandSource>): Generator<string, void, undefined> {
  for (const source of sources) yield* renderTable(source);
}

/** The tables as iptables-save prints them, less its comment lines, with all counters 0; in pieces as `renderTable`. */
export function* renderRuleSet(ruleSet: RuleSet): Generator<string, void, undefined> {
  for (const state of ruleSet.values()) yield* renderTable({ table: state.table, commands: stateCommands(state) });
}

/** The commands that make an empty table equal to the state. */
export function* stateCommands(state: TableState): Generator<Command, void, undefined> {
  for (const { name, policy } of state.chains.values()) {
    yield policy === undefined ? { kind: "chain", chain: name } : { kind: "chain", chain: name, policy };
  }
  for (const { name, rules } of state.chains.values()) {
    for (const rule of rules) yield { kind: "append", chain: name, rule };
  }
}

function checkTable(table: Table): Table {
  if (!TABLES.has(table)) throw new RuleTextError("table", table, `must be one of ${[...TABLES].join(", ")}`);
  return table;
}

/** Rules and commands in the words of iptables and iptables-restore. */

import { type Match, renderMatch } from "../rule/matches.ts";
import { not } from "../rule/options.ts";
import type {
  ChainFill,
  Command,
  CommandSource,
  PayloadSection,
  Rule,
  RuleSet,
  Table,
  TableState,
} from "../rule/rule.ts";
import { renderTarget } from "../rule/targets.ts";
import {
  checkChainName,
  checkCIDR,
  checkInteger,
  checkInterface,
  checkProtocol,
  RuleTextError,
} from "../rule/values.ts";

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
function renderFill({ chain, rules, make }: ChainFill): string {
  const name = checkChainName(chain);
  const append = `-A ${name}`;
  let text = make ? `:${name} - [0:0]` : "";
  for (const rule of rules) text += `${text === "" ? "" : "\n"}${append}${ruleWords(rule)}`;
  return text;
}

/** Characters a piece of rendered text has at least, the last one apart. */
const CHUNK_LENGTH = 64 * 1024;

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

/**
 * The rule as iptables-save 1.8.9 prints it after `-A CHAIN `; "" for a rule that matches everything and does nothing.
 *
 * @throws RuleTextError when a text in it could not be read back as the same rule
 */
export function renderRule(rule: Rule): string {
  return ruleWords(rule).slice(1);
}

/** Small enough to be made within a few milliseconds. */
const PIECE_CHARACTERS = 65_536;

/**
 * Lines as the text that a tool reads, made while it is read.
 *
 * @param turn gives the event loop its turn, between two pieces
 */
export async function* payloadText(
  lines: Iterable<string>,
  turn: () => Promise<void>,
): AsyncGenerator<string, void, undefined> {
  let piece = "";
  for (const line of lines) {
    piece += `${line}\n`;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
    await turn();
  }
  if (piece !== "") yield piece;
}

/**
 * Commands as the text that a tool reads, one a line.
 *
 * @param turn gives the event loop its turn, between two pieces
 */
export function commandText<Command>(
  commands: Iterable<Command>,
  render: (command: Command) => string,
  turn: () => Promise<void>,
): AsyncGenerator<string, void, undefined> {
  return payloadText(rendered(commands, render), turn);
}

/**
 * The lines of an iptables-restore payload, now and then several of them with their line ends between: each section is
 * a transaction of its table. Sections without a command are left out; a section and its commands are asked for when
 * those before it are written.
 *
 * @param written counts the rules of each table
 */
export function* restoreLines(
  sections: Iterable<PayloadSection>,
  written: Map<Table, number> = new Map(),
): Generator<string> {
  for (const { table, commands } of sections) {
    let rules = 0;
    let open = false;
    for (const command of commands) {
      for (const text of textsOf(command)) {
        if (text === "") continue;
        if (!open) yield `*${table}`;
        open = true;
        yield text;
      }
      rules += rulesIn(command);
    }
    if (open) yield "COMMIT";
    written.set(table, (written.get(table) ?? 0) + rules);
  }
}

const TABLES: ReadonlySet<string> = new Set<Table>(["filter", "nat", "mangle", "raw", "security"]);

function checkTable(table: Table): Table {
  if (!TABLES.has(table)) throw new RuleTextError("table", table, `must be one of ${[...TABLES].join(", ")}`);
  return table;
}

/**
 * The rule as iptables-save 1.8.9 prints it after `-A CHAIN`, each word with a leading space; "" for a rule that
 * matches everything and does nothing.
 */
function ruleWords(rule: Rule): string {
  let text = "";
  if (rule.source !== undefined) text += `${not(rule.source)} -s ${checkCIDR(rule.source.cidr)}`;
  if (rule.destination !== undefined) text += `${not(rule.destination)} -d ${checkCIDR(rule.destination.cidr)}`;
  if (rule.inInterface !== undefined) text += `${not(rule.inInterface)} -i ${checkInterface(rule.inInterface.value)}`;
  if (rule.outInterface !== undefined)
    text += `${not(rule.outInterface)} -o ${checkInterface(rule.outInterface.value)}`;
  if (rule.protocol !== undefined) text += `${not(rule.protocol)} -p ${checkProtocol(rule.protocol.value)}`;
  if (rule.fragment !== undefined) text += `${not(rule.fragment)} -f`;
  text = rule.matches.reduce(withMatch, text);
  if (rule.target !== undefined) text += renderTarget(rule.target);
  return text;
}

/** An iterator would make an object for each step, and a large sync has hundreds of thousands of rules. */
function withMatch(text: string, match: Match): string {
  return text + renderMatch(match);
}

/** A service has as many rules in one chain as it has endpoints. */
const RULES_AT_ONCE = 250;

function* rendered<Command>(commands: Iterable<Command>, render: (command: Command) => string): Generator<string> {
  for (const command of commands) yield render(command);
}

function* textsOf(command: Command | ChainFill): Generator<string> {
  if (command.kind !== "fill") yield renderCommand(command);
  else if (command.rules.length <= RULES_AT_ONCE) yield renderFill(command);
  else yield* partsOfFill(command);
}

function* partsOfFill({ rules, ...fill }: ChainFill): Generator<string> {
  let { make } = fill;
  let part: Rule[] = [];
  for (const rule of rules) {
    part.push(rule);
    if (part.length < RULES_AT_ONCE) continue;
    yield renderFill({ ...fill, rules: part, make });
    make = false;
    part = [];
  }
  yield renderFill({ ...fill, rules: part, make });
}

function rulesIn(command: Command | ChainFill): number {
  if (command.kind === "fill") return command.rules.length;
  return command.kind === "append" || command.kind === "insert" ? 1 : 0;
}

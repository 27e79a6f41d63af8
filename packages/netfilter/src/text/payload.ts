import type { ChainFill, Command, PayloadSection, Rule, Table } from "../rule/rule.ts";
import { renderCommand, renderFill } from "./render.ts";

/** A service has as many rules in one chain as it has endpoints. */
const RULES_AT_ONCE = 250;

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

function* rendered<Command>(commands: Iterable<Command>, render: (command: Command) => string): Generator<string> {
  for (const command of commands) yield render(command);
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

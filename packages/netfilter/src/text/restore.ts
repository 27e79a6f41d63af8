import { parseUnsigned } from "../rule/numbers.ts";
import { Problem } from "../rule/options.ts";
import type { Command, IPFamily, Table, TableCommands } from "../rule/rule.ts";
import { atLine, linesOf, parseChainLine, parseTableLine, withoutCounters } from "./lines.ts";
import { parseRuleWords, tokenize, type Words } from "./parse-rule.ts";

const COMMANDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "-A": "-A",
    "--append": "-A",
    "-I": "-I",
    "--insert": "-I",
    "-D": "-D",
    "--delete": "-D",
    "-F": "-F",
    "--flush": "-F",
    "-X": "-X",
    "--delete-chain": "-X",
  }),
);

/**
 * Reads a payload of iptables-restore or ip6tables-restore into commands with canonical rules: options in any order,
 * `-d` without a length, every way to set a mark, matches that -p loads by itself, defaults written out.
 *
 * A table that comes twice is two transactions, in the order of the text. Commands on a whole table (`-F` without a
 * chain), -N, -P, -R and `-D CHAIN NUMBER` are errors: nothing that this package renders has them.
 *
 * @throws RuleParseError with the line; also when the last table is not committed
 */
export function parseRestore(
  input: string | Iterable<string>,
  options: { readonly family?: IPFamily } = {},
): TableCommands[] {
  const family = options.family ?? "IPv4";
  const tables: TableCommands[] = [];
  let open: { readonly table: Table; readonly commands: Command[] } | undefined;
  let number = 0;
  for (const line of linesOf(input)) {
    number += 1;
    if (line === "" || line.startsWith("#")) continue;
    open = atLine(number, line, () => readLine(line, open, tables, family));
  }
  atLine(number, "", () => {
    if (open !== undefined) throw new Problem(`table ${open.table} is not committed`);
  });
  return tables;
}

type OpenTable = { readonly table: Table; readonly commands: Command[] };

/** @returns the table that is open after the line */
function readLine(
  line: string,
  open: OpenTable | undefined,
  done: TableCommands[],
  family: IPFamily,
): OpenTable | undefined {
  if (line.startsWith("*")) {
    if (open !== undefined) throw new Problem(`table ${open.table} is not committed yet`);
    return { table: parseTableLine(line), commands: [] };
  }
  if (open === undefined) throw new Problem("no table was begun");
  if (line.trimEnd() === "COMMIT") {
    done.push(open);
    return undefined;
  }
  open.commands.push(line.startsWith(":") ? chainCommand(line) : parseCommand(withoutCounters(line), family));
  return open;
}

function chainCommand(line: string): Command {
  const { name, ...policy } = parseChainLine(line);
  return { kind: "chain", chain: name, ...policy };
}

function parseCommand(line: string, family: IPFamily): Command {
  const words = tokenize(line);
  const [option = "", chain] = words.texts;
  const command = COMMANDS.get(option);
  if (command === undefined) throw new Problem(`unknown command "${option}"`);
  if (chain === undefined) throw new Problem(`${option} needs a chain`);
  switch (command) {
    case "-A":
      return { kind: "append", chain, rule: parseRuleWords(words, 2, family) };
    case "-D":
      return { kind: "delete", chain, rule: parseRuleWords(words, 2, family) };
    case "-I":
      return insertCommand(words, chain, family);
    default:
      if (words.texts.length > 2) throw new Problem(`unexpected word "${words.texts[2]}"`);
      return { kind: command === "-F" ? "flush" : "delete-chain", chain };
  }
}

function insertCommand(words: Words, chain: string, family: IPFamily): Command {
  const numbered = /^\d/.test(words.texts[2] ?? "");
  const position = numbered ? parseUnsigned(words.texts[2] ?? "", 0x7fffffff, "position") : 1;
  if (position < 1) throw new Problem("positions count from 1");
  return { kind: "insert", chain, position, rule: parseRuleWords(words, numbered ? 3 : 2, family) };
}

import { parseRestore, RuleParseError, type Table, type TableCommands } from "@fairlead/netfilter";
import { CommandError } from "../../runner/command-error.ts";
import type { Argv } from "../../runner/runner.ts";
import type { FakeKernel } from "./kernel.ts";
import { report } from "./refusal.ts";
import { commandLines, type Section } from "./sections.ts";
import { type FakeTable, TableDraft } from "./table.ts";
import { carryOut, type Refused } from "./transaction.ts";

/**
 * Carries out one section of a payload: all of it or nothing.
 *
 * @throws CommandError as iptables-restore would end
 */
export function restoreSection(
  kernel: FakeKernel,
  tableOf: (name: Table) => FakeTable,
  section: Section,
  argv: Argv,
): void {
  const commit = section.firstLine + section.lines.length - 1;
  const tool = kernel.variant === "nft" ? argv[0] : argv[0].replace("-legacy", "");
  const fail = ({ line, refusal }: Refused) =>
    new CommandError({ argv, reason: "exit", ...report(refusal, { tool, variant: kernel.variant, line, commit }) });
  if (!section.complete) {
    const stderr = `${tool}: COMMIT expected at line ${commit + 1}\n`;
    throw new CommandError({ argv, reason: "exit", exitCode: 1, stderr });
  }
  const numbers = commandLines(section);
  for (const { table, commands } of parse(kernel, section, fail)) {
    const draft = new TableDraft(tableOf(table));
    const numbered = commands.map((command, index) => ({ line: numbers[index] ?? commit, command }));
    const refused = carryOut(kernel, draft, numbered);
    if (refused !== undefined) throw fail(refused);
    draft.commit();
  }
}

/**
 * What the kernel has room for in one netlink message.
 *
 * @throws CommandError as iptables-nft-restore would end
 */
export function checkRoom({ firstLine, lines }: Section, room: number, argv: Argv): void {
  const size = lines.slice(1, -1).reduce((sum, { length }) => sum + length + 1, 0);
  if (size <= room) return;
  const commit = firstLine + lines.length - 1;
  const stderr = `sendmsg() failed: Message too long\n${argv[0]}: line ${commit} failed: Message too long.\n`;
  throw new CommandError({ argv, reason: "exit", exitCode: 1, stderr });
}

function parse(kernel: FakeKernel, section: Section, fail: (refused: Refused) => CommandError): TableCommands[] {
  try {
    return parseRestore(section.lines.join("\n"), { family: kernel.family });
  } catch (error) {
    if (!(error instanceof RuleParseError)) throw error;
    throw fail({ line: section.firstLine + error.line - 1, refusal: { form: "usage", words: error.message } });
  }
}

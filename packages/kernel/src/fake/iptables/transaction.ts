import type { Command, Rule } from "@fairlead/netfilter";
import { kernelFault, read, take } from "./commands.ts";
import type { FakeKernel } from "./kernel.ts";
import { checkChainReach, type ReachError, type TableCheck } from "./reach.ts";
import { type Refusal, refusalPhase } from "./refusal.ts";
import type { TableDraft } from "./table.ts";

export interface NumberedCommand {
  readonly line: number;
  readonly command: Command;
}

export interface Refused {
  readonly line: number;
  readonly refusal: Refusal;
}

/**
 * Carries out the commands of one `*table … COMMIT` on the draft.
 *
 * @returns what iptables-restore would complain about first; undefined: all was taken in and may be committed
 */
export function carryOut(
  kernel: FakeKernel,
  draft: TableDraft,
  commands: readonly NumberedCommand[],
): Refused | undefined {
  return kernel.variant === "nft" ? carryOutNft(kernel, draft, commands) : carryOutLegacy(kernel, draft, commands);
}

/** Reads the whole section, then looks at the table, then asks the kernel, which names a rule. */
function carryOutNft(kernel: FakeKernel, draft: TableDraft, commands: readonly NumberedCommand[]): Refused | undefined {
  const ways: TableCheck = { kernel, draft, withheld: flushedAgain(draft, commands) };
  const unreadable = first(commands, ({ command }) => read(kernel, command));
  return unreadable ?? takeAll(ways, commands, take);
}

/** Goes line by line and follows the ways of packets when all is done. */
function carryOutLegacy(
  kernel: FakeKernel,
  draft: TableDraft,
  commands: readonly NumberedCommand[],
): Refused | undefined {
  const ways: TableCheck = { kernel, draft, withheld: new Set() };
  const refused = takeAll(ways, commands, (_, command) => read(kernel, command) ?? take(ways, command));
  const checked = new Set<string>();
  const check = (chain: string) => {
    if (checked.has(chain)) return undefined;
    checked.add(chain);
    return blocked(checkChainReach(ways, chain), chain);
  };
  return refused ?? first(commands, ({ command }) => check(command.chain));
}

/** @returns what is refused while commands are taken in, else what the kernel would refuse afterwards */
function takeAll(
  ways: TableCheck,
  commands: readonly NumberedCommand[],
  takeOne: (ways: TableCheck, command: Command) => Refusal | undefined,
): Refused | undefined {
  const fromKernel: (Refused & Pick<NumberedCommand, "command">)[] = [];
  const atOnce = first(commands, ({ line, command }) => {
    const refusal = takeOne(ways, command);
    if (refusal === undefined || refusalPhase(refusal, ways.kernel.variant) !== "kernel") return refusal;
    fromKernel.push({ line, refusal, command });
    return undefined;
  });
  return atOnce ?? fromKernel.find(({ refusal, command }) => !isLifted(ways, refusal, command));
}

/** nf_tables follows the ways of packets when all is done: what a later line has flushed leads nowhere. */
function isLifted(ways: TableCheck, { form }: Refusal, command: Command): boolean {
  return form === "kernel" && "rule" in command && kernelFault(ways, command.chain, command.rule) === undefined;
}

/** Rules that their chain's flush in the same section takes back: iptables-nft does not send them. */
function flushedAgain(draft: TableDraft, commands: readonly NumberedCommand[]): ReadonlySet<Rule> {
  const flushed = new Set<string>();
  const rules = new Set<Rule>();
  for (const { command } of commands.toReversed()) {
    const { kind, chain } = command;
    if (kind === "flush" || (kind === "chain" && !draft.table.isBuiltin(chain))) flushed.add(chain);
    if ((kind === "append" || kind === "insert") && flushed.has(chain)) rules.add(command.rule);
  }
  return rules;
}

function blocked(errno: ReachError | undefined, chain: string): Refusal | undefined {
  return errno && { form: "kernel", operation: "RULE_APPEND", errno, object: `rule in chain ${chain}` };
}

function first(
  commands: readonly NumberedCommand[],
  check: (command: NumberedCommand) => Refusal | undefined,
): Refused | undefined {
  for (const command of commands) {
    const refusal = check(command);
    if (refusal !== undefined) return { line: command.line, refusal };
  }
  return undefined;
}

import { listedTexts, type Table } from "@fairlead/netfilter";
import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";
import { explain, isNoChain } from "./explain.ts";
import type { Tools } from "./tools.ts";

/**
 * The rules of several chains, as text. `iptables-restore` takes `-S` like any other command and prints what it lists:
 * one process reads the table once for all of them, and a payload that changes nothing is not committed. It ends at the
 * first chain that is not there; then, or where a version does not do it, each is asked for by a process of its own.
 *
 * @throws IptablesError
 */
export async function chainTexts(
  runner: Runner,
  { restore, iptables }: Pick<Tools, "restore" | "iptables">,
  table: Table,
  chains: readonly string[],
  lockSeconds: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const input = [`*${table}`, ...chains.map((chain) => `-S ${chain}`), "COMMIT", ""].join("\n");
  try {
    const { stdout } = await runner.run([restore, "--noflush", "-w", lockSeconds], { input });
    return listedTexts(stdout);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
  }
  const texts = new Map<string, readonly string[]>();
  for (const chain of chains) {
    const listed = await listOne(runner, [iptables, "-w", lockSeconds, "-t", table, "-S", chain]);
    for (const [name, rules] of listedTexts(listed)) texts.set(name, rules);
  }
  return texts;
}

/** What the tool prints; nothing for a chain that is not there. */
async function listOne(runner: Runner, argv: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await runner.run(argv)).stdout;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (isNoChain(error)) return "";
    throw explain(error);
  }
}

import type { IPFamily } from "@fairlead/core";
import type { Argv, RunResult } from "@fairlead/kernel";
import { PLAIN_TOOL } from "../support/plain-tool.ts";

const RESTORE = 'printf "%s" "$2" | "$1-restore" --noflush';

interface Runs {
  run(argv: Argv): Promise<RunResult>;
}

/**
 * Takes note of the chains and rules that others than the proxy have in nat and filter; those of pod networks are
 * written once, and nobody brings them back after a flush.
 *
 * @returns what writes them again, once the tables have been flushed
 */
export async function noteOthersRules(node: Runs, family: IPFamily): Promise<() => Promise<void>> {
  const tool = PLAIN_TOOL[family];
  const saved = await Promise.all(["nat", "filter"].map((table) => node.run([`${tool}-save`, "-t", table])));
  const text = saved.map(({ stdout }) => stdout.split("\n").filter(isOthers).join("\n")).join("\n");
  return async () => {
    await node.run(["sh", "-c", RESTORE, "sh", tool, `${text}\n`]);
  };
}

function isOthers(line: string): boolean {
  return /^(\*|:|-A |COMMIT)/.test(line) && !line.includes("KUBE-");
}

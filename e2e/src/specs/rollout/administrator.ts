import { CommandError, type RunOptions } from "@fairlead/kernel";
import type { Cluster } from "@fairlead/lab/provider/cluster";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { whole } from "../whole-kubernetes.ts";

/** What a command line of `fairlead` ended with; 1 is an answer. */
export interface ToolResult {
  readonly code: 0 | 1;
  readonly out: string;
}

/**
 * The command line tool as administrators use it.
 *
 * @throws CommandError for other exit codes
 */
export async function fairlead(
  cluster: Pick<Cluster, "kubernetes" | "apiServer">,
  [command, ...args]: readonly [command: string, ...args: string[]],
  options: RunOptions,
): Promise<ToolResult> {
  await requireTool();
  const { kubeconfig } = whole(cluster);
  const argv = [process.execPath, tool, command, `--kubeconfig=${kubeconfig}`, ...args] as const;
  try {
    return { code: 0, out: (await cluster.apiServer.run(argv, options)).stdout };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode !== 1) throw error;
    return { code: 1, out: error.stdout };
  }
}

/** @throws Error with what it printed where it ended otherwise */
export async function fairleadEnds(
  code: ToolResult["code"],
  cluster: Pick<Cluster, "kubernetes" | "apiServer">,
  args: readonly [command: string, ...args: string[]],
  options: RunOptions,
): Promise<string> {
  const told = await fairlead(cluster, args, options);
  if (told.code !== code)
    throw new Error(`fairlead ${args.join(" ")}: wanted exit ${code}, came ${told.code}:\n${told.out}`);
  return told.out;
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError, type RunOptions } from "@fairlead/kernel";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { able } from "./needs.ts";
import type { Scene } from "./scene.ts";

interface Asked {
  readonly code: 0 | 1;
  readonly out: string;
}

/** An administrator with a kubeconfig, where the API server is: nodes are reached through it. */
export interface Operator {
  /** The file; good where the API server is. */
  readonly kubeconfig: string;
  /**
   * Runs a command of `fairlead` with no option but those given.
   *
   * @returns what it printed, and whether it ended with 0 or with 1
   * @throws CommandError for other exit codes
   */
  ask(...args: readonly string[]): Promise<Asked>;
  /** The same, which a signal ends. @throws CommandError then, too */
  askUntil(signal: AbortSignal, ...args: readonly string[]): Promise<Asked>;
}

/** @param podsFolder where pods of the API server run on nodes that are namespaces; default: each node has one */
export async function openOperator(scene: Scene, podsFolder?: string): Promise<Operator> {
  await requireTool();
  const { apiServer } = scene.cluster;
  const file = scene.cluster.kubernetes?.kubeconfig ?? (await behindFront(scene, podsFolder));
  const asked = async (args: readonly string[], more: RunOptions = {}): Promise<Asked> => {
    const argv = ["env", "NO_COLOR=1", `KUBECONFIG=${file}`, process.execPath, tool, ...args] as const;
    try {
      return { code: 0, out: (await apiServer.run(argv, { timeoutMs: 0, ...more })).stdout };
    } catch (error) {
      if (!(error instanceof CommandError) || error.exitCode !== 1) throw error;
      return { code: 1, out: error.stdout };
    }
  };
  return {
    kubeconfig: file,
    ask: (...args) => asked(args),
    askUntil: (signal, ...args) => asked(args, { signal }),
  };
}

/** Nodes that are namespaces have no kubelet: what reaches into their agents' pods stands before the API server. */
async function behindFront({ cluster, later }: Scene, podsFolder: string | undefined): Promise<string> {
  const { apiServer, nodes } = cluster;
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-operator-`));
  later(() => rm(folder, { recursive: true }));
  const pids = new Map(nodes.map(({ name, namespacePid }) => [name, able(namespacePid)] as const));
  const { url, token } = apiServer;
  const front = await startPodFront(able(apiServer.namespace), { server: url, token, nodes: podsFolder ?? pids });
  later(async () => front[Symbol.asyncDispose]());
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig({ server: front.url, token }));
  return file;
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import type { Scene } from "./scene.ts";

/** Exit code 1: something differs, and what that is was said. */
export const ONE_IS_AN_ANSWER = '"$@" || [ $? -eq 1 ]';

/** Runs `fairlead` on a node, set up as its agent in that mode is. Gives what it printed. */
export type Tool = (node: ClusterNode, mode: string, ...args: readonly string[]) => Promise<string>;

/** The administrator's kubeconfig on the nodes, once it is certain that the tool is there. */
export async function openKubeconfig({ cluster, later }: Scene): Promise<string> {
  await requireTool();
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-tools-`));
  later(() => rm(folder, { recursive: true }));
  const file = join(folder, "kubeconfig");
  const { url, token } = cluster.apiServer;
  await writeFile(file, kubeconfig({ server: url, token }));
  return file;
}

/** The command line tool of an administrator on the nodes, which asks the real API server. */
export async function openTool(scene: Scene): Promise<Tool> {
  const file = await openKubeconfig(scene);
  const { cluster: shape } = scene;
  const cidrs = (flag: string, excluded: boolean) => networkCIDRs(shape, { excluded }).flatMap((cidr) => [flag, cidr]);
  const agent = [...cidrs("--cluster-cidr", false), ...cidrs("--exclude-cluster-cidr", true)];
  return async (node, mode, ...args) => {
    const where = ["--kubeconfig", file, "--node", node.name, "--mode", mode];
    const argv = [process.execPath, tool, ...args, ...where, ...agent];
    return (await node.run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv])).stdout;
  };
}

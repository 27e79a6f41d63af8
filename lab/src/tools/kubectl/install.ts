import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("kubectl.sh", import.meta.url));
const FORWARD = fileURLToPath(new URL("forward-main.ts", import.meta.url));

/**
 * Puts a kubectl into the folder that reaches nodes which are namespaces.
 *
 * @param nodes by name, a process in the network namespace of each
 * @returns the environment in which it is found
 */
export async function installKubectl(
  folder: string,
  nodes: ReadonlyMap<string, number>,
): Promise<Readonly<Record<string, string>>> {
  const [bin, pids] = [join(folder, "bin"), join(folder, "nodes")];
  await Promise.all([mkdir(bin), mkdir(pids)]);
  for (const [name, pid] of nodes) await writeFile(join(pids, name), String(pid));
  const file = join(bin, "kubectl");
  await writeFile(file, `#!/bin/sh\nexec bash ${SCRIPT} "$@"\n`);
  await chmod(file, 0o755);
  return {
    PATH: `${bin}:${process.env["PATH"] ?? "/usr/bin:/bin"}`,
    FAIRLEAD_NODES: pids,
    FAIRLEAD_FORWARD: FORWARD,
    FAIRLEAD_NODE_PROGRAM: process.execPath,
  };
}

import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Cluster } from "@fairlead/lab/provider/cluster";
import { messageOf } from "@fairlead/lab/support/processes";

/** Keeps what every node knows in a folder of its own below `folder`; gives that folder. */
export async function keepArtifacts(folder: string, title: string, cluster: Cluster, error: unknown): Promise<string> {
  const own = join(folder, title.replaceAll(/[^\w.-]+/g, "-"));
  const files = { "failure.txt": `${messageOf(error)}\n`, ...(await cluster.state()) };
  for (const [name, text] of Object.entries(files)) {
    const file = join(own, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return own;
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openCluster } from "../../src/cluster/cluster.ts";

/** A folder for the kubeconfigs of a test, and what is done with them. */
export class Kubeconfigs implements AsyncDisposable {
  readonly folder: string;
  readonly warnings: string[] = [];

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<Kubeconfigs> {
    return new Kubeconfigs(await mkdtemp(join(tmpdir(), "fairlead-kubeconfigs-")));
  }

  /**
   * Writes one with a single context.
   *
   * @param name of the file, the cluster, the user and the context
   */
  async write(name: string, cluster: object, user: object, more: object = {}): Promise<string> {
    const file = join(this.folder, name);
    const config = {
      clusters: [{ name, cluster }],
      users: [{ name, user }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": name,
      ...more,
    };
    await writeFile(file, JSON.stringify(config));
    return file;
  }

  /** A cluster as a command line in that environment has it. */
  cluster(env: Readonly<Record<string, string>>, context?: string) {
    return openCluster({ context }, { env, warn: (text) => this.warnings.push(text) });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.folder, { recursive: true });
  }
}

/** Files that commands read. They go with the folder of the run (tooling/temporary-folder.ts). */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openCluster } from "../../src/cluster/cluster.ts";

export function ownFolder(): string {
  return mkdtempSync(join(tmpdir(), "fairlead-"));
}

/** A file with these bytes, this text, or objects as JSON. */
export function fileOf(content: Uint8Array | string | object, name = "file"): string {
  const file = join(ownFolder(), name);
  const isWritten = typeof content === "string" || content instanceof Uint8Array;
  writeFileSync(file, isWritten ? content : JSON.stringify(content));
  return file;
}

/** A file of the agent's `--config`: an object of each group, with these fields. */
export function configFile(fairlead: object, kubeProxy: object = { mode: "iptables" }): string {
  const documents = [
    { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration", ...kubeProxy },
    { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", ...fairlead },
  ];
  return fileOf(documents.map((one) => JSON.stringify(one)).join("\n---\n"), "config.conf");
}

/** The kubeconfig of a cluster that takes all requests. */
export function kubeconfigFor(server: string): string {
  return new Kubeconfigs().write("c", { server }, {});
}

export class Kubeconfigs {
  readonly folder = ownFolder();
  readonly warnings: string[] = [];

  /**
   * Writes one with a single context.
   *
   * @param name of the file, the cluster, the user and the context
   */
  write(name: string, cluster: object, user: object, more: object = {}): string {
    const file = join(this.folder, name);
    const config = {
      clusters: [{ name, cluster }],
      users: [{ name, user }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": name,
      ...more,
    };
    writeFileSync(file, JSON.stringify(config));
    return file;
  }

  /** A cluster as a command line in that environment has it. */
  cluster(env: Readonly<Record<string, string>>, context?: string) {
    return openCluster({ context }, { env, warn: (text) => this.warnings.push(text) });
  }
}

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentFile } from "@fairlead/lab/agent";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { parse, stringify } from "yaml";
import { able } from "./needs.ts";
import type { Scene } from "./scene.ts";

/** Fields of the two documents of a configuration file, by their names. */
export interface ConfiguredFields {
  readonly kubeProxy?: Readonly<Record<string, unknown>>;
  readonly fairlead: Readonly<Record<string, unknown>>;
}

/**
 * Writes a configuration with which an agent runs as with its flags, and with settings that have none.
 *
 * @returns its flag; the file goes with the spec
 */
export async function configFlag(
  { cluster, later }: Pick<Scene, "cluster" | "later">,
  { agent, run }: ClusterNode,
  { kubeProxy = {}, fairlead }: ConfiguredFields,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-config-`));
  later(() => rm(folder, { recursive: true }));
  const file = join(folder, "config.yaml");
  const argv = (await readFile(`/proc/${able(agent.pid)()}/cmdline`, "utf8")).split("\0");
  const flags = argv.slice(argv.indexOf(agentFile()) + 1).filter((flag) => flag !== "");
  await run([process.execPath, agentFile(), ...flags, `--write-config-to=${file}`]);
  const own: Readonly<Record<string, unknown>> = parse(await readFile(file, "utf8"));
  const excludeClusterCIDRs = networkCIDRs(cluster, { excluded: true });
  const documents = [
    { ...own, ...kubeProxy },
    {
      apiVersion: "fairlead.dev/v1alpha1",
      kind: "FairleadConfiguration",
      ...(excludeClusterCIDRs.length > 0 && { multiCNI: { excludeClusterCIDRs } }),
      ...fairlead,
    },
  ];
  await writeFile(file, documents.map((document) => stringify(document)).join("---\n"));
  return `--config=${file}`;
}

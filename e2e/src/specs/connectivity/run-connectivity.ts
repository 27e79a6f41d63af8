import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import { kubeconfig } from "@fairlead/lab/control-plane/users";
import type { WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import { ONE_IS_AN_ANSWER } from "../tool-on.ts";

/** What `fairlead connectivity -o json` says, as far as it is looked at. */
export interface Report {
  readonly cases: readonly (Row & { readonly family: string; readonly frontend: string; readonly place: string })[];
  readonly checks: readonly { readonly name: string; readonly complaint?: string; readonly skipped?: string }[];
}

interface Row {
  readonly service: string;
  readonly complaint?: string;
}

/** The test of an administrator beyond the nodes. */
export interface Connectivity {
  /** The namespace of its services. */
  readonly namespace: string;
  run(...more: readonly string[]): Promise<Report>;
}

/** Has the nodes run its pods; whatever is left is removed after the spec. */
export async function openConnectivity(scene: Scene): Promise<Connectivity> {
  await requireTool();
  const { cluster, nodes, later } = scene;
  const namespace = `${scene.namespace}-test`;
  const kubelet = await cluster.runPodsOf?.(namespace);
  later(async () => kubelet?.dispose());
  const { argv: where, run } =
    cluster.kubernetes === undefined ? await fromOutside(scene) : fromHost(cluster.kubernetes, cluster);
  const named = ["--namespace", namespace, ...nodes.flatMap(({ name }) => ["--node", name])];
  const argv = [process.execPath, tool, "connectivity", ...where, ...named, "-o", "json"];
  const asked = async (...more: readonly string[]) =>
    (await run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv, ...more], { timeoutMs: 0 })).stdout;
  later(async () => void (await asked("--cleanup-only")));
  return { namespace, run: async (...more) => JSON.parse(await asked(...more)) };
}

interface Caller {
  readonly argv: readonly string[];
  run(argv: Argv, options?: RunOptions): Promise<RunResult>;
}

/** Beyond the nodes, which it reaches: pods are processes, whatever their image is. */
async function fromOutside({ cluster, nodes: [first], later }: Scene): Promise<Caller> {
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-connectivity-`));
  later(() => rm(folder, { recursive: true }));
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig({ server: cluster.apiServer.url, token: cluster.apiServer.token }));
  const external = cluster.families.flatMap((family) =>
    Array.from({ length: 4 }, () => ["--external-address", cluster.gateAddress(first, family)]).flat(),
  );
  const argv = ["--kubeconfig", file, "--outside", "--image", "any", ...external];
  return { argv, run: able(cluster.outside.run) };
}

/** Where the administrator is: pods have the agents' image. */
function fromHost({ kubeconfig: file }: WholeKubernetes, { apiServer }: Scene["cluster"]): Caller {
  return { argv: ["--kubeconfig", file], run: (argv, options) => apiServer.run(argv, options) };
}

/** What is wrong, in lines. */
export function complaintsOf({ cases, checks }: Report): readonly string[] {
  const rows = cases.flatMap(({ service, frontend, place, family, complaint }) =>
    complaint === undefined ? [] : [`${service}: ${frontend} (${family}) from ${place}: ${complaint}`],
  );
  return [
    ...rows,
    ...checks.flatMap(({ name, complaint }) => (complaint === undefined ? [] : [`${name}: ${complaint}`])),
  ];
}

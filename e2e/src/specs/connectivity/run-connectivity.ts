import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import type { WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import { ONE_IS_AN_ANSWER } from "../tool-on.ts";
import { openClusterDNS } from "./cluster-dns.ts";

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
  const dns = hasOwnDNS(scene) ? await openClusterDNS(scene, { namespace, name: "web-headless" }) : undefined;
  const kubelet = await cluster.runPodsOf?.(namespace, dns);
  later(async () => kubelet?.dispose());
  const { argv: where, run } =
    cluster.kubernetes === undefined ? await fromOutside(scene) : fromHost(cluster.kubernetes, cluster);
  const named = ["--namespace", namespace, ...nodes.flatMap(({ name }) => ["--node", name])];
  const argv = [process.execPath, tool, "connectivity", ...where, ...named, "-o", "json"];
  const excluded = networkCIDRs(cluster, { excluded: true }).flatMap((cidr) => ["--exclude-cluster-cidr", cidr]);
  const asked = async (...more: readonly string[]) =>
    (await run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv, ...more], { timeoutMs: 0 })).stdout;
  later(async () => void (await asked("--cleanup-only")));
  return { namespace, run: async (...more) => JSON.parse(await asked(...more, ...excluded)) };
}

/** Whether the spec brings a cluster DNS: whole Kubernetes has one. */
function hasOwnDNS({ cluster: { kubernetes, abilities = [] } }: Scene): boolean {
  return kubernetes === undefined && abilities.includes("dns");
}

/** Checks that the cluster can carry, and that were left out all the same. */
export function leftOut(scene: Scene, { checks }: Report): readonly string[] {
  const hasDNS = scene.cluster.kubernetes !== undefined || hasOwnDNS(scene);
  const hasForeign = scene.cluster.networks.some(({ excluded }) => excluded);
  const wanted = [hasDNS && "DNS", hasForeign && FOREIGN];
  return checks.flatMap(({ name, skipped }) => {
    return skipped !== undefined && wanted.includes(name) ? [`${name} was left out: ${skipped}`] : [];
  });
}

/** The check of a service whose endpoints another network has. */
export const FOREIGN = "another network's service is left alone";

interface Caller {
  readonly argv: readonly string[];
  run(argv: Argv, options?: RunOptions): Promise<RunResult>;
}

/** Beyond the nodes, which it reaches: pods are processes, whatever their image is. */
async function fromOutside({ cluster, nodes: [first], later }: Scene): Promise<Caller> {
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-connectivity-`));
  later(() => rm(folder, { recursive: true }));
  const file = join(folder, "kubeconfig");
  const { url: server, token } = cluster.apiServer;
  const pids = new Map(cluster.nodes.map((node) => [node.name, able(node.namespacePid)] as const));
  // Agents are asked whose a service is: they are no pods of the real server's.
  const front = await startPodFront(able(cluster.outside.namespace), { server, token, nodes: pids });
  later(async () => front[Symbol.asyncDispose]());
  await writeFile(file, kubeconfig({ server: front.url }));
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

/** Tools in an operator's hands: on a node, with a kubeconfig, on a whole Kubernetes. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { agentFile } from "@fairlead/lab/agent";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import type { Cluster, ClusterNode, ClusterShape, NodeProxy, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { answerOf, requireTool, type ToolResult, tool } from "@fairlead/lab/tools/page-reader";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { parse, stringify } from "yaml";
import { able, type Scene } from "./spec.ts";

export interface Operator {
  /** The file; good where the API server is. */
  readonly kubeconfig: string;
  /**
   * Runs a command of `fairlead` with no option but those given.
   *
   * @returns what it printed, and whether it ended with 0 or with 1
   */
  ask(...args: readonly string[]): Promise<ToolResult>;
}

export async function openOperator(scene: Scene): Promise<Operator> {
  await requireTool();
  const { apiServer } = scene.cluster;
  const file = scene.cluster.kubernetes?.kubeconfig ?? (await behindFront(scene));
  const ask = (...args: readonly string[]) => {
    const argv = ["env", "NO_COLOR=1", `KUBECONFIG=${file}`, process.execPath, tool, ...args] as const;
    return answerOf(() => apiServer.run(argv, { timeoutMs: 0 }));
  };
  return { kubeconfig: file, ask };
}

/** Exit code 1: something differs, and what that is was said. */
export const ONE_IS_AN_ANSWER = '"$@" || [ $? -eq 1 ]';

/** Runs `fairlead` on a node, set up as its agent in that mode is. Gives what it printed. */
export type Tool = (node: ClusterNode, mode: string, ...args: readonly string[]) => Promise<string>;

/** The administrator's kubeconfig on the nodes, once it is certain that the tool is there. */
export async function openKubeconfig({ cluster, folder }: Scene): Promise<string> {
  await requireTool();
  const file = join(await folder(), "kubeconfig");
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

export async function configFlag(
  { cluster, folder }: Pick<Scene, "cluster" | "folder">,
  { agent, run }: ClusterNode,
  fairlead: Readonly<Record<string, unknown>>,
): Promise<string> {
  const file = join(await folder(), "config.yaml");
  const argv = (await readFile(`/proc/${able(agent.pid)()}/cmdline`, "utf8")).split("\0");
  const flags = argv.slice(argv.indexOf(agentFile()) + 1).filter((flag) => flag !== "");
  await run([process.execPath, agentFile(), ...flags, `--write-config-to=${file}`]);
  const own: Readonly<Record<string, unknown>> = parse(await readFile(file, "utf8"));
  const excludeClusterCIDRs = networkCIDRs(cluster, { excluded: true });
  const documents = [
    own,
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

export const ROLLOUT_MS = 300_000;

/** For `Spec.unfit`. */
export function needsKubelets({ provider }: ClusterShape): string | undefined {
  return provider === "kind" ? undefined : "needs kubelets and DaemonSets: --provider kind";
}

export function whole({ kubernetes }: Pick<Cluster, "kubernetes">): WholeKubernetes {
  if (kubernetes === undefined) throw new Error("the cluster has no kubelets and DaemonSets");
  return kubernetes;
}

type Kubectl = Pick<WholeKubernetes, "kubectl">;

/** kubectl in the namespace of proxies. */
export function kubectlSystem({ kubectl }: Kubectl, ...args: readonly string[]) {
  return kubectl(["-n", "kube-system", ...args], { timeoutMs: ROLLOUT_MS });
}

/** Resolves when its pods are gone. */
export async function removeProxy(
  kubernetes: Kubectl,
  daemonSet: "fairlead" | "fairlead-edge" | "kube-proxy",
): Promise<void> {
  await kubectlSystem(kubernetes, "delete", "daemonset", daemonSet, "--ignore-not-found", "--cascade=foreground");
}

export async function backToFairlead(cluster: Pick<Cluster, "kubernetes">): Promise<void> {
  const kubernetes = whole(cluster);
  await removeProxy(kubernetes, "kube-proxy");
  await kubernetes.addFairlead();
}

/**
 * Nodes that are namespaces have no kubelet: what reaches into their agents' pods stands before the API server. The way
 * to the real one has the administrator's token: an impersonated user has their own rights.
 *
 * @param namespace where the kubeconfig that this returns is good; default: the API server's
 */
export async function behindFront(
  { cluster, folder, later }: Scene,
  namespace = able(cluster.apiServer.namespace),
): Promise<string> {
  const { url: server, token } = cluster.apiServer;
  const nodes = new Map(cluster.nodes.map(({ name, namespaceFile }) => [name, able(namespaceFile)] as const));
  const front = await startPodFront(namespace, { server, token, nodes });
  later(front.stop);
  const file = join(await folder(), "kubeconfig");
  await writeFile(file, kubeconfig({ server: front.ready }));
  return file;
}

/** The program of the real kube-proxy; "": none is given. */
export const { FAIRLEAD_KUBE_PROXY: KUBE_PROXY = "" } = process.env;

/** For `Spec.unfit`: a cluster with kubelets has kube-proxy's image, others its program. */
export function lackingKubeProxy({ provider }: ClusterShape): string | undefined {
  return KUBE_PROXY === "" && provider === "netns" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined;
}

/** Does something with kube-proxy on every node, in the mode of the cluster. Afterwards Fairlead is there again. */
export async function withKubeProxy<T>(scene: Scene, act: (scene: Scene) => Promise<T>): Promise<T> {
  const { mode, nodes, kubernetes } = scene.cluster;
  const give = async (proxy: NodeProxy) => {
    if (kubernetes === undefined) await Promise.all(nodes.map(({ agent }) => able(agent.swap)(proxy)));
    else await kubernetes.giveProxies(new Map(nodes.map(({ name }) => [name, proxy])));
  };
  scene.later(() => give({ mode }));
  await give({ mode, kubeProxy: KUBE_PROXY });
  return act(scene);
}

import { fieldsOf, itemsOf, objectAt, type RawObject, stringOf } from "@fairlead/base";
import type { Runner } from "@fairlead/kernel";
import type { ClusterAccess } from "../cluster/access.ts";
import { ApiError } from "../cluster/api-error.ts";
import { type Cluster, openCluster } from "../cluster/cluster.ts";
import type { Container } from "../cluster/pods.ts";
import { inNamespace, PODS, type Resource, type Selection, SYSTEM_NAMESPACE } from "../cluster/resources.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { withCoreutils } from "./coreutils.ts";
import { COREUTILS } from "./host.ts";

/** How a command's options name an agent, alongside its node. */
export interface AgentAccess extends ClusterAccess {
  readonly "service-proxy-name"?: string | undefined;
}

export interface Agents {
  readonly cluster: Cluster;
  /** The service proxy name of the agents that are meant; default: the nodes' first proxies. */
  readonly instance?: string | undefined;
}

export function agentsOf(options: AgentAccess, context: Pick<Context, "env" | "warn">): Agents {
  return { cluster: openCluster(options, context), instance: options["service-proxy-name"] };
}

/** The label of pods whose agents run alongside the nodes' first proxies: their service proxy name. */
const INSTANCE_LABEL = "fairlead.dev/service-proxy-name";

/**
 * Labels by which agents are found: the chart's, those of kubeadm's DaemonSet in which only the image was changed, and
 * those of Windows nodes.
 */
const FIRST_SELECTORS = [
  `app.kubernetes.io/name=fairlead,!${INSTANCE_LABEL}`,
  "k8s-app=kube-proxy",
  "app.kubernetes.io/name=fairlead-windows",
] as const;

function selectorsOf({ instance = "" }: Agents): readonly string[] {
  return instance === "" ? FIRST_SELECTORS : [`${INSTANCE_LABEL}=${instance}`];
}

/** The running agent of a node. */
export async function findAgentPod(node: string, agents: Agents): Promise<Container> {
  const found = await placedAgent(node, agents);
  if (found !== undefined) return found.container;
  const selectors = selectorsOf(agents).join(" or ");
  throw new CommandFailure(`--on=${node}: no agent runs there (no running pod with ${selectors})`);
}

/**
 * The pod of a node's running agent.
 *
 * @param node undefined: any
 * @returns undefined: there is none
 */
export async function placedAgent(node: string | undefined, agents: Agents): Promise<PlacedPod | undefined> {
  const onNode = node === undefined ? "" : `spec.nodeName=${node},`;
  for (const labels of selectorsOf(agents)) {
    const [found] = await podsOf(agents, { labels, fields: `${onNode}status.phase=Running` });
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The running agents of all nodes, by the nodes' names: a list for each selector, however many there are. */
export async function agentPods(agents: Agents): Promise<ReadonlyMap<string, Container>> {
  const byNode = new Map<string, Container>();
  for (const labels of selectorsOf(agents)) {
    for (const { node, container } of await podsOf(agents, { labels, fields: "status.phase=Running" })) {
      if (!byNode.has(node)) byNode.set(node, container);
    }
  }
  return byNode;
}

/** An agent's pod. */
export interface PlacedPod {
  readonly node: string;
  readonly container: Container;
  /** Straight from JSON. */
  readonly spec: RawObject;
}

async function podsOf({ cluster }: Agents, selection: Selection): Promise<readonly PlacedPod[]> {
  const list = async (resource: Resource) => (await cluster.list(resource, selection)).flatMap(podIn);
  try {
    return await list(PODS);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    // A user who may not read all pods may read those of the namespace that proxies are in.
    return list(inNamespace(PODS, SYSTEM_NAMESPACE)).catch(() => {
      throw error;
    });
  }
}

function podIn(pod: unknown): readonly PlacedPod[] {
  const { name, namespace } = objectAt(pod, "metadata");
  const spec = objectAt(pod, "spec");
  const node = stringOf(spec["nodeName"]);
  const container = stringOf(fieldsOf(itemsOf(spec["containers"])[0])["name"]);
  if (node === undefined || container === undefined) return [];
  const at = { name: stringOf(name) ?? "", namespace: stringOf(namespace) ?? "", container };
  const windows = fieldsOf(spec["nodeSelector"])["kubernetes.io/os"] === "windows";
  return [{ node, container: { ...at, ...(windows && { windows }) }, spec }];
}

/** Starts programs in a proxy's container; what an image without these programs lacks, its own `fairlead` prints. */
export function runnerInPod(cluster: Pick<Cluster, "runner">, pod: Container): Runner {
  const runner = cluster.runner(pod);
  return withCoreutils(runner, (argv) => runner.run(["fairlead", COREUTILS, ...argv]));
}

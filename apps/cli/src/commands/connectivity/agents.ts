import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import type { Cluster } from "../../cluster/cluster.ts";
import { PODS } from "../../cluster/resources.ts";
import { okText, portsOf, proxyIn } from "../../node/agent-endpoint.ts";
import { type Agents, agentPods } from "../../node/agent-pods.ts";
import type { TestNode } from "./model.ts";

/** The image of a Fairlead agent that runs: nodes have it. Undefined: none does, or pods may not be listed. */
export async function agentImage(cluster: Cluster): Promise<string | undefined> {
  const pods = await cluster.list(PODS, { labels: "app.kubernetes.io/name=fairlead" }).catch(() => []);
  const [container] = pods.flatMap((pod) => itemsOf(fieldsOf(fieldsOf(pod)["spec"])["containers"]));
  return stringOf(fieldsOf(container)["image"]);
}

/** The mode of each node's proxy, as far as it says it: any proxy may serve. */
export async function nodeModes(agents: Agents, nodes: readonly TestNode[]): Promise<ReadonlyMap<string, string>> {
  return new Map(await Promise.all(nodes.map(async ({ name }) => [name, await modeOf(agents, name)] as const)));
}

async function modeOf(agents: Agents, node: string): Promise<string> {
  return (await agentText(agents, node, "/proxyMode").catch(() => undefined))?.trim() ?? "proxy unknown";
}

/**
 * A page of the node's proxy.
 *
 * @returns undefined: there is no pod of one
 * @throws CommandFailure when it does not answer
 */
export async function agentText(agents: Agents, node: string, path: string): Promise<string | undefined> {
  const pod = (await agentPods(agents)).get(node);
  const { metrics } = portsOf({ "metrics-port": undefined, "service-proxy-name": agents.instance });
  return pod === undefined ? undefined : okText(proxyIn(pod, agents), metrics, path);
}

import { release } from "node:os";
import { fieldsOf, stringOf } from "@fairlead/base";
import type { SeenNode } from "@fairlead/inspect";
import type { Context } from "../../../frame/context.ts";
import { agentPages, type ProxyAccess, proxyIn } from "../../../node/agent-endpoint.ts";
import { eachNode } from "../../../node/agent-ownership.ts";
import { type Agents, agentPods } from "../../../node/agent-pods.ts";

/** Counters of kube-proxy and Fairlead in iptables mode. */
const COUNTERS = {
  localhostPackets: "kubeproxy_iptables_localhost_nodeports_accepted_packets_total",
  invalidPackets: "kubeproxy_iptables_ct_state_invalid_dropped_packets_total",
} as const;

/** The host that this program runs on. */
export function thisHost(addresses: readonly string[]): SeenNode {
  return { kernel: release(), addresses };
}

/**
 * What Nodes say of their kernels, and the running proxies' counters. A proxy that does not answer leaves its counters
 * unknown.
 *
 * @param nodes Node objects, straight from JSON
 * @param port of the proxies' metricsBindAddress
 */
export async function seenNodes(
  nodes: readonly unknown[],
  agents: Agents,
  port: number,
  context: Context,
): Promise<ReadonlyMap<string, SeenNode>> {
  const pods = await agentPods(agents);
  const byName = new Map(nodes.map((node) => [nameOf(node), kernelOf(node)] as const));
  const all = await context.progress("asking the nodes' proxies", () =>
    eachNode([...byName.keys()], async (name) => {
      const pod = pods.get(name);
      const metrics = pod === undefined ? undefined : await metricsOf(proxyIn(pod, agents), port);
      return { name, seen: { ...byName.get(name), ...countersIn(metrics ?? "") } };
    }),
  );
  return new Map(all.map(({ name, seen }) => [name, seen]));
}

async function metricsOf(way: ProxyAccess, port: number) {
  try {
    return (await agentPages(way, { metrics: port, health: port }, "health")).metrics;
  } catch {
    return undefined;
  }
}

/** @param metrics as Prometheus reads them */
export function countersIn(metrics: string): Pick<SeenNode, keyof typeof COUNTERS> {
  const found = Object.entries(COUNTERS).flatMap(([field, name]) => {
    const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(metrics)?.[1];
    return value === undefined ? [] : [[field, Number(value)] as const];
  });
  return Object.fromEntries(found);
}

function kernelOf(node: unknown): Pick<SeenNode, "kernel"> {
  const kernel = stringOf(fieldsOf(fieldsOf(fieldsOf(node)["status"])["nodeInfo"])["kernelVersion"]);
  return kernel === undefined ? {} : { kernel };
}

function nameOf(node: unknown): string {
  return stringOf(fieldsOf(fieldsOf(node)["metadata"])["name"]) ?? "";
}

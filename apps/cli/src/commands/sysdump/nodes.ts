import { errorText } from "@fairlead/base";
import { openTracking } from "@fairlead/kernel";
import type { LogBounds } from "../../cluster/cluster.ts";
import type { Container } from "../../cluster/pod-runner.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { nodeNameOf } from "../../inputs/api-source.ts";
import { okText, type ProxyAccess, portsOf, proxyHere, proxyIn } from "../../node/agent-endpoint.ts";
import { type Agents, agentPods, agentsOf } from "../../node/agent-pods.ts";
import { podTracking } from "../../node/connections.ts";
import { listedRunner } from "../../node/listings.ts";
import type { Missing } from "../../sysdump/layout.ts";
import type { DumpedNode } from "./node.ts";
import type { sysdumpOptions } from "./options.ts";

type Values = CommandInput<typeof sysdumpOptions>["options"];

/** Of each container: an hour and more of a busy agent. */
const LOG: LogBounds = { lines: 10_000, bytes: 2 << 20 };

/** The nodes that are asked for: how each is asked, or why it cannot be. */
export interface DumpedNodes {
  readonly nodes: readonly (DumpedNode | { readonly name: string; readonly problem: string })[];
  readonly missing: readonly Missing[];
}

/** @param names of the cluster's Nodes, as far as they are known */
export async function dumpedNodes(options: Values, names: readonly string[], context: Context): Promise<DumpedNodes> {
  const { live, on } = options;
  if (live) return { nodes: [thisHost(options, context)], missing: [] };
  const agents = agentsOf(options, context);
  const pods = await agentPods(agents).catch((error: unknown) => ({ why: errorText(error) }));
  const problem = "why" in pods ? pods.why : "no agent runs there";
  const found: ReadonlyMap<string, Container> = "why" in pods ? new Map() : pods;
  const wanted = on === undefined ? [...new Set([...names, ...found.keys()])].sort() : [on];
  return {
    nodes: wanted.map((name) => {
      const pod = found.get(name);
      return pod === undefined ? { name, problem } : nodeOf(name, pod, agents, options);
    }),
    missing: "why" in pods ? [{ what: "agents' pods", why: pods.why }] : [],
  };
}

function thisHost(options: Values, context: Context): DumpedNode {
  return {
    name: nodeNameOf(options),
    runner: async () => context.runner,
    tracking: (runner) => openTracking(runner),
    page: pageOf(proxyHere(context), options),
  };
}

function nodeOf(name: string, pod: Container, agents: Agents, options: Values): DumpedNode {
  const { cluster } = agents;
  return {
    name,
    runner: () => listedRunner(cluster.runner(pod)),
    tracking: async (runner) => podTracking(runner),
    page: pageOf(proxyIn(pod, agents), options),
    log: (previous) => cluster.log(pod, { ...LOG, previous }),
  };
}

function pageOf(way: ProxyAccess, options: Values): DumpedNode["page"] {
  const { metrics, health } = portsOf(options);
  // A status other than 200 of the health port comes with why it is not healthy.
  return async (path) => (path === "/livez" ? (await way.ask(health, path)).text : okText(way, metrics, path));
}

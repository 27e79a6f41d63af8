import { errorText } from "@fairlead/base";
import type { Runner, RunOptions, StreamOptions } from "@fairlead/kernel";
import type { LogBounds } from "../../cluster/cluster.ts";
import type { Container } from "../../cluster/pod-runner.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { nodeNameOf } from "../../inputs/api-source.ts";
import { okText, type ProxyAccess, portsOf, proxyHere, proxyIn } from "../../node/agent-endpoint.ts";
import { type Agents, agentPods, agentsOf } from "../../node/agent-pods.ts";
import { stateIn } from "../../node/read-state.ts";
import type { Missing } from "../../sysdump/dump.ts";
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

/**
 * @param names of the cluster's Nodes, as far as they are known
 * @param patienceMs for each answer
 */
export async function dumpedNodes(
  options: Values,
  names: readonly string[],
  patienceMs: number,
  context: Context,
): Promise<DumpedNodes> {
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
      return pod === undefined ? { name, problem } : nodeOf(name, pod, agents, options, patienceMs);
    }),
    missing: "why" in pods ? [{ what: "agents' pods", why: pods.why }] : [],
  };
}

function thisHost(options: Values, context: Context): DumpedNode {
  return {
    name: nodeNameOf(options),
    state: (parts) => context.stateHere(parts),
    page: pageOf(proxyHere(context), options),
  };
}

function nodeOf(name: string, pod: Container, agents: Agents, options: Values, patienceMs: number): DumpedNode {
  const { cluster } = agents;
  const runner = cluster.runner(pod);
  return {
    name,
    state: (parts, signal) => stateIn(until(runner, signal), parts),
    page: pageOf(proxyIn(pod, agents, patienceMs), options),
    log: (previous) => cluster.log(pod, { ...LOG, previous }),
  };
}

/** All programs end with the signal. */
function until(runner: Runner, signal: AbortSignal): Runner {
  const own = <O extends RunOptions | StreamOptions>(options: O | undefined) => ({ signal, ...options });
  return {
    run: (argv, options) => runner.run(argv, own(options)),
    stream: (argv, options) => runner.stream(argv, own(options)),
  };
}

function pageOf(way: ProxyAccess, options: Values): DumpedNode["page"] {
  const { metrics, health } = portsOf(options);
  // A status other than 200 of the health port comes with why it is not healthy.
  return async (path) => (path === "/livez" ? (await way.ask(health, path)).text : okText(way, metrics, path));
}

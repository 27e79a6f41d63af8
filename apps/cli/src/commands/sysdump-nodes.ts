/** The nodes of an archive: how each is asked, and the files that come of its answers. */

import { errorText } from "@fairlead/base";
import { type NodeState, nodeStateText, STATE_PARTS, type StatePart } from "@fairlead/inspect";
import type { Runner, RunOptions, StreamOptions } from "@fairlead/kernel";
import type { LogBounds } from "../cluster/cluster.ts";
import type { Container } from "../cluster/pods.ts";
import type { sysdumpOptions } from "../facts/clusters.ts";
import type { CommandInput } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { nodeNameOf } from "../inputs/cluster-access.ts";
import { noSuchNode } from "../inputs/names.ts";
import { okText, type ProxyAccess, portsOf, proxyHere, proxyIn } from "../node/agent-endpoint.ts";
import { type Agents, agentPods, agentsOf, runnerInPod } from "../node/agent-pods.ts";
import { stateIn } from "../node/read-state.ts";
import { type Missing, PATHS } from "../sysdump/dump.ts";
import { keptPage, PAGE_PATHS, shareableState, withoutSecrets } from "../sysdump/kept-node.ts";

/** How a node is asked. Each may throw. */
interface DumpedNode {
  readonly name: string;
  readonly state: (parts: readonly StatePart[], signal: AbortSignal) => Promise<NodeState>;
  readonly page: (path: string) => Promise<string>;
  /** The end of its agent's log; absent: there is no way to it. */
  readonly log?: (previous: boolean) => Promise<string>;
}

/** The nodes that are asked for: how each is asked, or why it cannot be. */
export interface DumpedNodes {
  readonly nodes: readonly (DumpedNode | { readonly name: string; readonly problem: string })[];
  readonly missing: readonly Missing[];
}

type Values = CommandInput<typeof sysdumpOptions>["options"];

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
  if (on !== undefined && names.length > 0 && !names.includes(on) && !found.has(on)) throw noSuchNode("on", on, names);
  const wanted = on === undefined ? [...new Set([...names, ...found.keys()])].sort() : [on];
  return {
    nodes: wanted.map((name) => {
      const pod = found.get(name);
      return pod === undefined ? { name, problem } : nodeOf(name, pod, agents, options, patienceMs);
    }),
    missing: "why" in pods ? [{ what: "agents' pods", why: pods.why }] : [],
  };
}

export interface NodeFiles {
  readonly files: ReadonlyMap<string, string>;
  readonly missing: readonly Missing[];
}

/** Asks a node for everything at once; what is not there when the signal aborts is missing. */
export async function nodeFiles(node: DumpedNode, signal: AbortSignal): Promise<NodeFiles> {
  const files = new Map<string, string>();
  const missing: Missing[] = [];
  const part = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await untilAborted(work(), signal);
    } catch (error) {
      missing.push({ what, why: withoutSecrets(errorText(error)) });
    }
  };
  await Promise.all([
    part("kernel", async () => {
      const state = shareableState(await node.state([...STATE_PARTS, "connections"], signal));
      files.set(PATHS.state(node.name), nodeStateText(state));
      for (const [what, why] of Object.entries(state.problems)) missing.push({ what: `kernel: ${what}`, why });
    }),
    ...PAGE_PATHS.map((path) =>
      part(`agent ${path}`, async () => {
        const kept = keptPage(path, await node.page(path));
        if (kept === undefined) throw new Error("unknown format");
        files.set(PATHS.page(node.name, path), kept);
      }),
    ),
    ...logParts(node, files, part),
  ]);
  return { files, missing };
}

/** Of each container: an hour and more of a busy agent. */
const LOG: LogBounds = { lines: 10_000, bytes: 2 << 20 };

function thisHost(options: Values, context: Context): DumpedNode {
  return {
    name: nodeNameOf(options),
    state: (parts) => context.stateHere(parts),
    page: pageOf(proxyHere(context), options),
  };
}

function nodeOf(name: string, pod: Container, agents: Agents, options: Values, patienceMs: number): DumpedNode {
  const { cluster } = agents;
  const runner = runnerInPod(cluster, pod);
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

function logParts(
  { name, log }: DumpedNode,
  files: Map<string, string>,
  part: (what: string, work: () => Promise<void>) => Promise<void>,
): readonly Promise<void>[] {
  if (log === undefined) return [];
  return [
    part("log", async () => void files.set(PATHS.log(name), withoutSecrets(await log(false)))),
    // Most containers are the first of their pod.
    log(true).then(
      (text) => void (text !== "" && files.set(PATHS.previousLog(name), withoutSecrets(text))),
      () => undefined,
    ),
  ];
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error("no answer in time"));
    if (signal.aborted) late();
    signal.addEventListener("abort", late, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", late));
  });
}

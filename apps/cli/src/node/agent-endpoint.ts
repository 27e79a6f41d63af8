/** What a running agent is asked: its pages, its owners, a full sync. */

import { errorText, parseJSON } from "@fairlead/base";
import { instanceDefaults } from "@fairlead/config";
import type { AgentPages } from "@fairlead/inspect";
import type { LearnedOnce, OwnershipRow } from "@fairlead/intake";
import { CommandError, nodeLockProcess, type Runner } from "@fairlead/kernel";
import { type Container, httpOver, LargeAnswer } from "../cluster/pods.ts";
import { portOf } from "../frame/command.ts";
import type { Context, HttpAnswer } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { type AgentAccess, type Agents, agentPods, agentsOf, findAgentPod } from "./agent-pods.ts";
import { FULL_SYNC, PATIENCE_MS } from "./host.ts";

/** How options name an agent: of the node `on`, through the API server, else of this host. */
interface NamedAgent extends AgentAccess {
  readonly on?: string | undefined;
  readonly "metrics-port": string | undefined;
  readonly "service-proxy-name": string | undefined;
}

/** What a running agent says at a path of its local endpoint, such as `/ownership`. */
export async function askAgent(
  path: string,
  options: NamedAgent,
  context: Pick<Context, "askHere" | "env" | "warn">,
): Promise<string> {
  const { metrics } = portsOf(options);
  if (options.on === undefined) return okText(proxyHere(context), metrics, path);
  const agents = agentsOf(options, context);
  return okText(proxyIn(await findAgentPod(options.on, agents), agents), metrics, path);
}

export interface AgentPorts {
  readonly metrics: number;
  /** healthzBindAddress */
  readonly health: number;
}

/** The ports that `--metrics-port` and `--health-port` say, else the defaults. */
export function portsOf(options: {
  readonly "metrics-port": string | undefined;
  readonly "health-port"?: string | undefined;
  readonly "service-proxy-name": string | undefined;
}): AgentPorts {
  const { "metrics-port": metrics, "health-port": health, "service-proxy-name": name = "" } = options;
  const { metricsPort, healthzPort } = instanceDefaults(name);
  return {
    metrics: metrics === undefined ? metricsPort : portOf("metrics-port", metrics),
    health: health === undefined ? healthzPort : portOf("health-port", health),
  };
}

/**
 * What an agent says of itself; a page that does not answer is left out.
 *
 * @param pages `health` leaves out `/ownership`, which grows with the services
 */
export async function agentPages(
  way: ProxyAccess,
  { metrics, health }: AgentPorts,
  pages: "all" | "health" = "all",
): Promise<AgentPages> {
  const page = (path: string) => okText(way, metrics, path).catch(() => undefined);
  const proxyMode = await okText(way, metrics, "/proxyMode");
  const [text, livez, ownership] = await Promise.all([
    page("/metrics"),
    // A status other than 200 comes with why it is not healthy.
    way.ask(health, "/livez").then(
      (answer) => answer.text,
      () => undefined,
    ),
    pages === "all" ? page("/ownership") : undefined,
  ]);
  return { metrics: text, proxyMode, livez, ...(pages === "all" && { ownership }) };
}

/** A way to the loopback that an agent listens on. */
export interface ProxyAccess {
  readonly ask: (port: number, path: string) => Promise<HttpAnswer>;
  /** What messages call a port of it. */
  readonly nameOf: (port: number) => string;
}

/** Of this host. */
export function proxyHere({ askHere }: Pick<Context, "askHere">): ProxyAccess {
  return { ask: askHere, nameOf: (port) => `http://127.0.0.1:${port}` };
}

/** Through the API server. */
export function proxyIn(pod: Container, { cluster }: Agents, patienceMs = PATIENCE_MS): ProxyAccess {
  return {
    async ask(port, path) {
      const connection = await cluster.connect(pod, port);
      try {
        return await httpOver(connection, { path, timeoutMs: patienceMs });
      } finally {
        connection.destroy();
      }
    },
    nameOf: (port) => `port ${port} of pod ${pod.namespace}/${pod.name}: `,
  };
}

export async function okText(way: ProxyAccess, port: number, path: string): Promise<string> {
  const name = `${way.nameOf(port)}${path}`;
  try {
    const { status, text } = await way.ask(port, path);
    if (status >= 200 && status < 300) return text;
    throw new CommandFailure(`${name} answers ${status}`);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    if (error instanceof LargeAnswer) throw new CommandFailure(`${name} ${error.message}`, { cause: error });
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CommandFailure(`${name} does not answer: ${errorText(cause)}`, { cause: error });
  }
}

export interface AgentOwnership {
  readonly services: readonly OwnershipRow[];
  /** Absent: it learns none. */
  readonly networks?: LearnedOnce["report"];
}

export async function agentOwnership(
  options: NamedAgent,
  context: Pick<Context, "askHere" | "env" | "warn">,
): Promise<AgentOwnership> {
  return ownershipOf(await askAgent("/ownership", options, context));
}

/** What the agent of a node says; `problem`: it does not answer, or says something else. */
export type NodeOwnership = { readonly node: string } & (
  | { readonly ownership: AgentOwnership }
  | { readonly problem: string }
);

/** Asks the agents of all nodes, in the order of the nodes' names. */
export async function allOwnership(agents: Agents, port: number): Promise<readonly NodeOwnership[]> {
  const pods = await agentPods(agents);
  return eachNode([...pods.keys()].sort(), async (node): Promise<NodeOwnership> => {
    const pod = pods.get(node);
    if (pod === undefined) return { node, problem: "no agent runs there" };
    try {
      return { node, ownership: ownershipOf(await okText(proxyIn(pod, agents), port, "/ownership")) };
    } catch (error) {
      return { node, problem: errorText(error) };
    }
  });
}

/** Nodes that are asked at the same time: each is a process or two here, and work for the API server. */
const AT_ONCE = 4;

/** Does the work for each node, for a few at once. */
export async function eachNode<T>(nodes: readonly string[], work: (node: string) => Promise<T>): Promise<readonly T[]> {
  const results = new Map<string, T>();
  const queue = nodes.values();
  const worker = async () => {
    for (const node of queue) results.set(node, await work(node));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return nodes.flatMap((node) => results.get(node) ?? []);
}

function ownershipOf(text: string): AgentOwnership {
  const answer = parseJSON(text);
  if (isReport(answer)) return answer;
  throw new CommandFailure("the agent's /ownership is not what this version of fairlead knows");
}

function isReport(answer: unknown): answer is AgentOwnership {
  if (typeof answer !== "object" || answer === null || !("services" in answer)) return false;
  const networks = "networks" in answer ? answer.networks : undefined;
  return isTable(answer.services, SERVICE) && (networks === undefined || isNetworks(networks));
}

function isNetworks(networks: unknown): boolean {
  if (typeof networks !== "object" || networks === null) return false;
  if (!("sources" in networks) || !("cidrs" in networks) || !("conflicts" in networks)) return false;
  return isTable(networks.sources, SOURCE) && isTable(networks.cidrs, CIDR) && isTable(networks.conflicts, CONFLICT);
}

function isTable(rows: unknown, fields: readonly string[]): boolean {
  return Array.isArray(rows) && rows.every((one) => fields.every((field) => typeof one?.[field] === "string"));
}

const SERVICE = ["service", "ipFamily", "ownership", "why", "frontends"] as const;
const SOURCE = ["source", "side", "state"] as const;
const CIDR = ["cidr", "side", "source", "stage"] as const;
const CONFLICT = ["cidr", "side", "within"] as const;

/**
 * Asks the agent of this host for a full sync.
 *
 * @param instance its --service-proxy-name; empty: the first one's
 */
export async function notifyOwnAgent(instance: string): Promise<void> {
  const pid = await nodeLockProcess(instance);
  if (pid === undefined) {
    throw new CommandFailure(
      "no agent of Fairlead is seen on this host (as root, in the host's network and process namespaces); other proxies cannot be asked",
    );
  }
  try {
    process.kill(pid, "SIGUSR2");
  } catch (error) {
    throw new CommandFailure(`cannot signal process ${pid}: ${errorText(error)}`, { cause: error });
  }
}

/**
 * Has the `fairlead` in an agent's pod notify that agent: a user who may start programs there may do so.
 *
 * @param pod starts programs in the pod
 * @param instance as in `notifyOwnAgent`
 */
export async function notifyPodsAgent(pod: Runner, instance: string): Promise<void> {
  try {
    await pod.run(["fairlead", FULL_SYNC, ...(instance === "" ? [] : [instance])]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const why = error.stderr || error.message;
    throw new CommandFailure(`the agent of that node cannot be asked, it takes Fairlead's image: ${why}`, {
      cause: error,
    });
  }
}

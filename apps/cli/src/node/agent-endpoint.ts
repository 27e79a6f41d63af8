import { errorText } from "@fairlead/base";
import { instanceDefaults } from "@fairlead/config";
import type { AgentPages } from "@fairlead/inspect";
import { accessOf, type ClusterAccess } from "../cluster/access.ts";
import { httpOver, LargeAnswer } from "../cluster/pod-port.ts";
import type { Container } from "../cluster/pod-runner.ts";
import type { Context, HttpAnswer } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { portOf } from "../frame/port.ts";
import { type Agents, agentsOf, findAgentPod } from "./agent-pods.ts";
import { PATIENCE_MS } from "./host.ts";

export interface AgentAddress {
  /** The node whose agent is asked, through the API server; absent: this one. */
  readonly on?: string | undefined;
  readonly cluster: ClusterAccess;
  /** The agent's service proxy name; default: the node's first proxy. */
  readonly instance?: string | undefined;
  /** Port of the agent's metricsBindAddress. */
  readonly port: number;
}

/**
 * What a running agent says at a path of its local endpoint, such as `/ownership`.
 *
 * @throws CommandFailure when there is no agent, or it does not answer with 200
 */
export async function askAgent(
  path: string,
  { on, cluster: access, instance, port }: AgentAddress,
  context: Pick<Context, "askHere" | "env" | "warn">,
): Promise<string> {
  if (on === undefined) return okText(proxyHere(context), port, path);
  const agents = agentsOf({ ...access, "service-proxy-name": instance }, context);
  return okText(proxyIn(await findAgentPod(on, agents), agents), port, path);
}

/**
 * The same of the agent in a pod.
 *
 * @throws CommandFailure when it does not answer with 200
 */
export function askAgentIn(pod: Container, path: string, port: number, agents: Agents): Promise<string> {
  return okText(proxyIn(pod, agents), port, path);
}

/** The ports at which an agent answers. */
export interface AgentPorts {
  /** metricsBindAddress */
  readonly metrics: number;
  /** healthzBindAddress */
  readonly health: number;
}

/**
 * The ports that `--metrics-port` and `--health-port` say, else the defaults.
 *
 * @throws UsageError for one that is no port
 */
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

/** @throws UsageError as `portsOf` */
export function agentAddressOf(
  options: ClusterAccess & {
    readonly on?: string | undefined;
    readonly "metrics-port": string | undefined;
    readonly "service-proxy-name": string | undefined;
  },
): AgentAddress {
  const { on, "service-proxy-name": instance } = options;
  return { on, cluster: accessOf(options), instance, port: portsOf(options).metrics };
}

/**
 * What an agent says of itself; a page that does not answer is left out.
 *
 * @param pages `health` leaves out `/ownership`, which grows with the services
 * @throws CommandFailure when its metrics port does not answer
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

/**
 * Through the API server.
 *
 * @param patienceMs that it gets for an answer
 */
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

/** @throws CommandFailure unless it answers with 2xx */
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

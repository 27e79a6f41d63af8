import { errorText } from "@fairlead/base";
import { instanceDefaults } from "@fairlead/config";
import type { AgentPages } from "@fairlead/inspect";
import { lines } from "@fairlead/kernel";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { ClusterAccess } from "../inputs/cluster-access.ts";
import { portOf } from "../inputs/number.ts";
import { type AgentPod, clusterFlags, findAgentPod, type KubectlOptions } from "./kubectl.ts";

export interface AgentAddress {
  /** The node whose agent is asked, through kubectl; absent: this one. */
  readonly on?: string | undefined;
  readonly cluster: ClusterAccess;
  /** The agent's service proxy name; default: the node's first proxy. */
  readonly instance?: string | undefined;
  /** Port of the agent's metricsBindAddress. */
  readonly port: number;
}

/** POST changes something. */
type Method = "GET" | "POST";

/** Milliseconds that an agent gets to answer, and kubectl to open the way to it. */
const PATIENCE = 15_000;

/**
 * What a running agent says at a path of its local endpoint, such as `/ownership`.
 *
 * @throws CommandFailure when there is no agent, or it does not answer with 200
 */
export async function askAgent(
  path: string,
  { on, cluster, instance, port }: AgentAddress,
  { runner }: Pick<Context, "runner">,
  method: Method = "GET",
): Promise<string> {
  if (on === undefined) return fetchText(`http://127.0.0.1:${port}${path}`, method);
  const options = { runner, cluster, instance };
  const pod = await findAgentPod(on, options);
  return withPortForward(pod, [port], options, (local) => fetchText(`http://127.0.0.1:${local(port)}${path}`, method));
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
  const { on, kubeconfig, context, "service-proxy-name": instance } = options;
  return { on, cluster: { kubeconfig, context }, instance, port: portsOf(options).metrics };
}

/**
 * What an agent says of itself, by one port-forward; a page that does not answer is left out.
 *
 * @param pod absent: the agent of this host
 * @param pages `health` leaves out `/ownership`, which grows with the services
 * @throws CommandFailure when its metrics port does not answer
 */
export async function agentPages(
  pod: AgentPod | undefined,
  { metrics, health }: AgentPorts,
  options: KubectlOptions,
  pages: "all" | "health" = "all",
): Promise<AgentPages> {
  const asked = pages === "all" ? pagesAt : healthAt;
  if (pod === undefined) return asked({ metrics, health });
  return withPortForward(pod, [metrics, health], options, (local) =>
    asked({ metrics: local(metrics), health: local(health) }),
  );
}

async function pagesAt(ports: AgentPorts): Promise<AgentPages> {
  const [pages, ownership] = await Promise.all([healthAt(ports), page(ports, "/ownership")]);
  return { ...pages, ownership };
}

async function healthAt(ports: AgentPorts): Promise<AgentPages> {
  const proxyMode = await fetchText(`http://127.0.0.1:${ports.metrics}/proxyMode`, "GET");
  const [metrics, livez] = await Promise.all([page(ports, "/metrics"), livezAt(ports.health)]);
  return { metrics, proxyMode, livez };
}

function page({ metrics }: AgentPorts, path: string): Promise<string | undefined> {
  return fetchText(`http://127.0.0.1:${metrics}${path}`, "GET").catch(() => undefined);
}

/** It says as well why it is not healthy. */
async function livezAt(port: number): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(PATIENCE) });
    return await response.text();
  } catch {
    return undefined;
  }
}

async function withPortForward<T>(
  { namespace, name }: AgentPod,
  ports: readonly number[],
  { runner, cluster }: KubectlOptions,
  use: (local: (port: number) => number) => Promise<T>,
): Promise<T> {
  const wanted = ports.map((port) => `:${port}`);
  const forward = ["port-forward", `--namespace=${namespace}`, "--address=127.0.0.1", `pod/${name}`, ...wanted];
  const output = runner.stream(["kubectl", ...clusterFlags(cluster), ...forward], { timeoutMs: PATIENCE });
  const opened = new Map<number, number>();
  // Leaving the loop ends kubectl.
  for await (const line of lines(output)) {
    const [, local, remote] = /^Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)/.exec(line) ?? [];
    if (local !== undefined) opened.set(Number(remote), Number(local));
    if (ports.every((port) => opened.has(port))) return await use((port) => opened.get(port) ?? port);
  }
  throw new CommandFailure(`kubectl port-forward to ${namespace}/${name} ended without a port`);
}

async function fetchText(url: string, method: Method): Promise<string> {
  try {
    const response = await fetch(url, { method, signal: AbortSignal.timeout(PATIENCE) });
    if (response.ok) return await response.text();
    throw new CommandFailure(`${url} answers ${response.status}`);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CommandFailure(`${url} does not answer: ${errorText(cause)}`, {
      cause: error,
    });
  }
}

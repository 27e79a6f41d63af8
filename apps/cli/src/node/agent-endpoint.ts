import { errorText } from "@fairlead/base";
import { lines } from "@fairlead/kernel";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { ClusterAccess } from "../inputs/source.ts";
import { type AgentPod, clusterFlags, findAgentPod, type KubectlOptions } from "./kubectl.ts";

export interface AgentAddress {
  /** The node whose agent is asked, through kubectl; absent: this one. */
  readonly on?: string | undefined;
  readonly cluster: ClusterAccess;
  /** Port of the agent's metricsBindAddress. */
  readonly port: number;
}

/** POST changes something. */
type Method = "GET" | "POST";

/** Milliseconds that an agent gets to answer, and kubectl to open the way to it. */
const patience = 15_000;

/**
 * What a running agent says at a path of its local endpoint, such as `/ownership`.
 *
 * @throws CommandFailure when there is no agent, or it does not answer with 200
 */
export async function askAgent(
  path: string,
  { on, cluster, port }: AgentAddress,
  { runner }: Pick<Context, "runner">,
  method: Method = "GET",
): Promise<string> {
  if (on === undefined) return fetchText(`http://127.0.0.1:${port}${path}`, method);
  const options = { runner, cluster };
  const pod = await findAgentPod(on, options);
  return withPortForward(pod, port, options, (local) => fetchText(`http://127.0.0.1:${local}${path}`, method));
}

async function withPortForward<T>(
  { namespace, name }: AgentPod,
  port: number,
  { runner, cluster }: KubectlOptions,
  use: (localPort: string) => Promise<T>,
): Promise<T> {
  const forward = ["port-forward", `--namespace=${namespace}`, "--address=127.0.0.1", `pod/${name}`, `:${port}`];
  const output = runner.stream(["kubectl", ...clusterFlags(cluster), ...forward], { timeoutMs: patience });
  // Leaving the loop ends kubectl.
  for await (const line of lines(output)) {
    const local = /^Forwarding from 127\.0\.0\.1:(\d+) -> /.exec(line)?.[1];
    if (local !== undefined) return await use(local);
  }
  throw new CommandFailure(`kubectl port-forward to ${namespace}/${name} ended without a port`);
}

async function fetchText(url: string, method: Method): Promise<string> {
  try {
    const response = await fetch(url, { method, signal: AbortSignal.timeout(patience) });
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

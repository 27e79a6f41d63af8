import { type Argv, CommandError, type Runner, type RunOptions } from "@fairlead/kernel";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { ClusterAccess } from "../inputs/cluster-access.ts";

/** The pod of an agent, or of kube-proxy itself. */
export interface AgentPod {
  readonly namespace: string;
  readonly name: string;
  readonly container: string;
}

export interface KubectlOptions {
  /** Starts kubectl. */
  readonly runner: Runner;
  readonly cluster: ClusterAccess;
  /** The service proxy name of the agents that are meant; default: the nodes' first proxies. */
  readonly instance?: string | undefined;
}

/** How a command's options name an agent, beside its node. */
export interface AgentAccess extends ClusterAccess {
  readonly "service-proxy-name"?: string | undefined;
}

/** kubectl for the cluster, and the agents, that a command's options name. */
export function kubectlOf(options: AgentAccess, { runner }: Pick<Context, "runner">): KubectlOptions {
  const { kubeconfig, context, "service-proxy-name": instance } = options;
  return { runner, cluster: { kubeconfig, context }, instance };
}

/** The label of pods whose agents run beside the nodes' first proxies: their service proxy name. */
const INSTANCE_LABEL = "fairlead.dev/service-proxy-name";

/**
 * Labels by which agents are found: the chart's, and those of kubeadm's DaemonSet in which only the image was changed.
 */
const FIRST_SELECTORS = [`app.kubernetes.io/name=fairlead,!${INSTANCE_LABEL}`, "k8s-app=kube-proxy"] as const;

function selectorsOf({ instance = "" }: KubectlOptions): readonly string[] {
  return instance === "" ? FIRST_SELECTORS : [`${INSTANCE_LABEL}=${instance}`];
}

/**
 * The running agent of a node.
 *
 * @throws CommandFailure when kubectl fails, or no agent runs there
 */
export async function findAgentPod(node: string, options: KubectlOptions): Promise<AgentPod> {
  const selectors = selectorsOf(options);
  for (const selector of selectors) {
    const field = `spec.nodeName=${node},status.phase=Running`;
    const args = ["get", "pods", "--all-namespaces", `--selector=${selector}`, `--field-selector=${field}`];
    const { stdout } = await kubectl([...args, "--output=json"], options);
    const found = podOf(JSON.parse(stdout));
    if (found !== undefined) return found;
  }
  throw new CommandFailure(`--on=${node}: no agent runs there (no running pod with ${selectors.join(" or ")})`);
}

/**
 * The running agents of all nodes, by the nodes' names: two calls of kubectl, however many there are.
 *
 * @throws CommandFailure when kubectl fails
 */
export async function agentPods(options: KubectlOptions): Promise<ReadonlyMap<string, AgentPod>> {
  const agents = new Map<string, AgentPod>();
  for (const selector of selectorsOf(options)) {
    const args = ["get", "pods", "--all-namespaces", `--selector=${selector}`, "--field-selector=status.phase=Running"];
    const { stdout } = await kubectl([...args, "--output=json"], options);
    const list: PodList = JSON.parse(stdout);
    for (const item of list.items ?? []) {
      const { nodeName } = item.spec ?? {};
      const pod = podOf({ items: [item] });
      if (nodeName !== undefined && pod !== undefined && !agents.has(nodeName)) agents.set(nodeName, pod);
    }
  }
  return agents;
}

/** Starts programs in the agent's pod, which sees the node's network namespace. */
export function podRunner({ namespace, name, container }: AgentPod, { runner, cluster }: KubectlOptions): Runner {
  const exec = ["exec", "--stdin", `--namespace=${namespace}`, name, `--container=${container}`, "--"];
  const inPod = (argv: Argv): Argv => ["kubectl", ...clusterFlags(cluster), ...exec, ...argv];
  return {
    run: async (argv, options) => {
      try {
        return await runner.run(inPod(argv), options);
      } catch (error) {
        throw withoutLog(error);
      }
    },
    async *stream(argv, options) {
      try {
        yield* runner.stream(inPod(argv), options);
      } catch (error) {
        throw withoutLog(error);
      }
    },
  };
}

/**
 * `E0504 10:11:12.345678 1234 memcache.go:265] "Unhandled Error" …`: what kubectl logs before it says the same in a
 * sentence.
 */
const LOG_LINE = /^[EIWF]\d{4} [\d:.]+ +\d+ \S+\.go:\d+\] /;

/** What kubectl has to say itself, each line once. */
function saidBy(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const own = lines.filter((line) => !LOG_LINE.test(line));
  return [...new Set(own.length === 0 ? lines.slice(-1) : own)].join("\n");
}

function withoutLog(error: unknown): unknown {
  if (!(error instanceof CommandError)) return error;
  const { argv, reason, exitCode, signal, stderr, stdout, cause } = error;
  return new CommandError({ argv, reason, exitCode, signal, stderr: saidBy(stderr), stdout, cause });
}

/** @throws CommandFailure with what kubectl says */
export async function kubectl(args: readonly string[], { runner, cluster }: KubectlOptions, options: RunOptions = {}) {
  try {
    return await runner.run(["kubectl", ...clusterFlags(cluster), ...args], options);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandFailure(`kubectl: ${saidBy(error.stderr) || error.message}`, { cause: error });
  }
}

/** For kubectl to talk to the same cluster. */
export function clusterFlags({ kubeconfig, context }: ClusterAccess): readonly string[] {
  return [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === undefined ? [] : [`--context=${context}`]),
  ];
}

interface PodList {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string; readonly namespace?: string };
    readonly spec?: {
      readonly nodeName?: string;
      readonly containers?: readonly { readonly name?: string }[];
    };
  }[];
}

function podOf(list: PodList): AgentPod | undefined {
  const [pod] = list.items ?? [];
  const { name, namespace } = pod?.metadata ?? {};
  const container = pod?.spec?.containers?.[0]?.name;
  if (name === undefined || namespace === undefined || container === undefined) return undefined;
  return { name, namespace, container };
}

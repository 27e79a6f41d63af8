import { type Argv, CommandError, type Runner } from "@fairlead/kernel";
import { CommandFailure } from "../frame/errors.ts";

/** The pod of an agent, or of kube-proxy itself. */
export interface AgentPod {
  readonly namespace: string;
  readonly name: string;
  readonly container: string;
}

export interface KubectlOptions {
  /** Starts kubectl. */
  readonly runner: Runner;
  readonly kubeconfig?: string | undefined;
}

/** Labels by which agents are found: the chart's, and those of kubeadm's DaemonSet in which only the image was changed. */
const SELECTORS = ["app.kubernetes.io/name=fairlead", "k8s-app=kube-proxy"] as const;

/**
 * The running agent of a node.
 *
 * @throws CommandFailure when kubectl fails, or no agent runs there
 */
export async function findAgentPod(node: string, options: KubectlOptions): Promise<AgentPod> {
  for (const selector of SELECTORS) {
    const field = `spec.nodeName=${node},status.phase=Running`;
    const args = ["get", "pods", "--all-namespaces", `--selector=${selector}`, `--field-selector=${field}`];
    const { stdout } = await kubectl([...args, "--output=json"], options);
    const found = podOf(JSON.parse(stdout));
    if (found !== undefined) return found;
  }
  throw new CommandFailure(`--on=${node}: no agent runs there (no running pod with ${SELECTORS.join(" or ")})`);
}

/** Starts programs in the agent's pod, which sees the node's network namespace. */
export function podRunner({ namespace, name, container }: AgentPod, { runner, kubeconfig }: KubectlOptions): Runner {
  const exec = ["exec", "--stdin", `--namespace=${namespace}`, name, `--container=${container}`, "--"];
  const inPod = (argv: Argv): Argv => ["kubectl", ...clusterFlags(kubeconfig), ...exec, ...argv];
  return {
    run: (argv, options) => runner.run(inPod(argv), options),
    stream: (argv, options) => runner.stream(inPod(argv), options),
  };
}

async function kubectl(args: readonly string[], { runner, kubeconfig }: KubectlOptions) {
  try {
    return await runner.run(["kubectl", ...clusterFlags(kubeconfig), ...args]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandFailure(`kubectl: ${error.stderr.trim() || error.message}`, { cause: error });
  }
}

export function clusterFlags(kubeconfig: string | undefined): readonly string[] {
  return kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`];
}

interface PodList {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string; readonly namespace?: string };
    readonly spec?: { readonly containers?: readonly { readonly name?: string }[] };
  }[];
}

function podOf(list: PodList): AgentPod | undefined {
  const [pod] = list.items ?? [];
  const { name, namespace } = pod?.metadata ?? {};
  const container = pod?.spec?.containers?.[0]?.name;
  if (name === undefined || namespace === undefined || container === undefined) return undefined;
  return { name, namespace, container };
}

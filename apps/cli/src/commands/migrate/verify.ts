import { errorText } from "@fairlead/base";
import type { PlannedNode } from "@fairlead/inspect";
import { CommandError, type Runner } from "@fairlead/kernel";
import { checkPod, type Installation, type Verified } from "@fairlead/migrate";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { FollowedNodes } from "../../inputs/followed-nodes.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { nodeAddresses } from "../../node/kernel-state.ts";
import { type AgentPod, type KubectlOptions, kubectl, podRunner } from "../../node/kubectl.ts";
import { listedRunner } from "../../node/listings.ts";
import { reportsOf } from "../verify/look.ts";

/** Until Fairlead's image is on the node and runs there. */
const START_S = 120;
const CALL_MS = (START_S + 30) * 1000;

/** How many services that differ are named. */
const NAMED = 5;

/** Looks at nodes until it is disposed of. */
export interface NodeVerifier extends Disposable {
  verify(node: string): Promise<Verified>;
}

/**
 * Compares the kernels of nodes with what should be programmed there, from a pod of Fairlead's image that is on the
 * node only for that: kube-proxy's own has no tools, and the image is there before the node's proxy is changed.
 *
 * The cluster is read for the first node and followed for the others. Watches may be behind: a node that differs is
 * compared once more, with objects that are read after its rules.
 *
 * @param config the file of the configuration that Fairlead is given
 */
export function nodeVerifier(
  { options: { image }, flags }: Installation,
  config: string,
  kubectlOptions: KubectlOptions,
  context: Context,
): NodeVerifier {
  const values = {
    file: [],
    ...kubectlOptions.cluster,
    config,
    mode: "iptables",
    "service-proxy-name": undefined,
    "cluster-cidr": [],
    "exclude-cluster-cidr": [],
    "agent-flag": flags,
    "node-address": [],
    memory: undefined,
  } as const;
  // What is wrong with single objects was told by the survey, or is told by `fairlead verify`.
  const quiet = { ...context, warn: () => {} };
  const nodes = new FollowedNodes(values, quiet);
  const look = async (node: string, runner: Runner): Promise<Verified> => {
    const live = await nodeAddresses(runner);
    const judge = (planned: PlannedNode, setup: AgentSetup) => judged(planned, setup, { ...quiet, runner });
    const first = await nodes.withPlan(node, live, judge);
    if (first?.kind === "clean") return first;
    const { planned, setup } = await plannedNode({ ...values, node }, quiet, { live });
    return judge(planned, setup);
  };
  return {
    async verify(node) {
      try {
        return await withCheckPod(node, image, kubectlOptions, async (pod) =>
          look(node, await listedRunner(podRunner(pod, kubectlOptions))),
        );
      } catch (error) {
        if (!(error instanceof CommandFailure || error instanceof CommandError)) throw error;
        return { kind: "unseen", reason: errorText(error) };
      }
    },
    [Symbol.dispose]: () => nodes[Symbol.dispose](),
  };
}

async function judged(planned: PlannedNode, setup: AgentSetup, context: Context): Promise<Verified> {
  const reports = await reportsOf(planned, setup, { rules: undefined }, context);
  // In a cluster of one family kube-proxy has nothing in the other one.
  const served = reports.filter(({ family }) => planned.planner.plan(family).groups.size > 0);
  const services = served.flatMap((report) => report.services).filter(({ findings }) => findings.some(isOurs));
  return services.length === 0 ? { kind: "clean" } : { kind: "different", what: differingText(services) };
}

const BUILT_IN = /^\w+ (?:PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING)$/;

/**
 * Whether a finding is about what the proxy has programmed. What others' rules do to traffic and who of all stands
 * first in a built-in chain are the same before and after the change.
 */
function isOurs({ kind, where }: Services[number]["findings"][number]): boolean {
  return kind !== "different" || !(where.startsWith("traffic ") || BUILT_IN.test(where));
}

type Services = Awaited<ReturnType<typeof reportsOf>>[number]["services"];

function differingText(services: Services): string {
  const named = services.slice(0, NAMED).map(({ service, kind, findings }) => {
    const first = findings.find(isOurs);
    return `${service ?? "what all services share"} is ${kind} (${first?.kind}: ${first?.where} ${first?.what})`;
  });
  const more = services.length > NAMED ? ` and ${services.length - NAMED} more` : "";
  return `${named.join("; ")}${more}`;
}

async function withCheckPod<T>(
  node: string,
  image: string,
  options: KubectlOptions,
  use: (pod: AgentPod) => Promise<T>,
): Promise<T> {
  const manifest = checkPod(node, image);
  const { name, namespace } = manifest.metadata;
  const own = [`--namespace=${namespace}`, "--ignore-not-found"];
  const remove = () => kubectl(["delete", "pod", name, ...own], options, { timeoutMs: CALL_MS });
  // One that a killed run has left may be ending.
  await remove();
  try {
    await kubectl(["apply", "--filename=-"], options, { input: JSON.stringify(manifest) });
    const ready = ["wait", `pod/${name}`, `--namespace=${namespace}`, "--for=condition=Ready", `--timeout=${START_S}s`];
    await kubectl(ready, options, { timeoutMs: CALL_MS });
    return await use({ name, namespace, container: "check" });
  } finally {
    await remove();
  }
}

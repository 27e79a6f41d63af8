import { errorText } from "@fairlead/base";
import type { NodeState, PlannedNode } from "@fairlead/inspect";
import { CommandError, type Runner } from "@fairlead/kernel";
import { accessOf, type ClusterAccess } from "../../cluster/access.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { firstOf } from "../../frame/text.ts";
import { type AgentSetup, agentSetup } from "../../inputs/agent.ts";
import { plannedNode } from "../../inputs/planned.ts";
import type { Installation } from "../../migrate/manifests.ts";
import type { Verified } from "../../migrate/migrate.ts";
import type { ProxyName } from "../../migrate/state.ts";
import { interfaceAddresses } from "../../node/access.ts";
import { runnerInPod } from "../../node/agent-pods.ts";
import { stateIn } from "../../node/read-state.ts";
import { reportsOf } from "../verify/look.ts";
import { withCheckPod } from "./port.ts";

/** How many services that differ are named. */
const NAMED = 5;

/**
 * Compares the kernels of nodes with what should be programmed there, from a pod of Fairlead's image that is on the
 * node only for that: kube-proxy's own has no tools, and the image is there before the node's proxy is changed.
 *
 * The objects are read after each node's rules, as its agent reads them when it starts.
 *
 * @param configs the files of what each proxy is given: they may be in different modes
 */
export function nodeVerifier(
  { options: { image }, flags }: Installation,
  configs: Readonly<Record<ProxyName, string>>,
  { cluster, access }: { readonly cluster: Cluster; readonly access: ClusterAccess },
  context: Context,
): (node: string, proxy: ProxyName) => Promise<Verified> {
  const values = {
    file: [],
    ...accessOf(access),
    mode: "iptables",
    "service-proxy-name": undefined,
    "cluster-cidr": [],
    "exclude-cluster-cidr": [],
    "agent-flag": flags,
    "node-address": [],
    "metrics-port": undefined,
    memory: undefined,
  } as const;
  // The survey has reported problems of single objects, or `fairlead verify` does.
  const quiet = { ...context, warn: () => {} };
  const look = async (node: string, config: string, runner: Runner): Promise<Verified> => {
    const state = await stateIn(runner);
    const live = interfaceAddresses(state);
    // What a node's proxy is given counts, and not what runs there before.
    const setup = agentSetup({ ...values, config }, quiet);
    const { planned } = await plannedNode({ ...values, config, node }, quiet, { live, setup });
    return judged(planned, setup, state, quiet);
  };
  return async (node, proxy) => {
    try {
      return await withCheckPod(node, image, cluster, context.signal, async (pod) =>
        look(node, configs[proxy], runnerInPod(cluster, pod)),
      );
    } catch (error) {
      if (!(error instanceof CommandFailure || error instanceof CommandError)) throw error;
      return { kind: "unseen", reason: errorText(error) };
    }
  };
}

async function judged(planned: PlannedNode, setup: AgentSetup, state: NodeState, context: Context): Promise<Verified> {
  const reports = await reportsOf(planned, setup, { state }, context);
  // In a cluster of one family kube-proxy has nothing in the other one.
  const served = reports.filter(({ family }) => planned.planner.plan(family).groups.size > 0);
  const services = served.flatMap((report) => report.services).filter(({ findings }) => findings.some(isOurs));
  return services.length === 0 ? { kind: "clean" } : { kind: "different", what: differingText(services) };
}

const BUILT_IN = /^\w+ (?:PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING)$/;

/**
 * Whether a finding is about what the proxy has programmed. What other programs' rules do to traffic, and the order
 * in a built-in chain, are the same before and after the change.
 */
function isOurs({ kind, where }: Services[number]["findings"][number]): boolean {
  return kind !== "different" || !(where.startsWith("traffic ") || BUILT_IN.test(where));
}

type Services = Awaited<ReturnType<typeof reportsOf>>[number]["services"];

function differingText(services: Services): string {
  const named = services.map(({ service, kind, findings }) => {
    const first = findings.find(isOurs);
    return `${service ?? "what all services share"} is ${kind} (${first?.kind}: ${first?.where} ${first?.what})`;
  });
  return firstOf(named, NAMED, "; ");
}

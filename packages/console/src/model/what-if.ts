import { IP_FAMILIES, inSlices } from "@fairlead/base";
import { ClusterState, type ServiceKey } from "@fairlead/core";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { type PlannedNode, planNodeSteps } from "@fairlead/inspect";
import { type LearnedOnce, subscriptions } from "@fairlead/intake";
import { createManifestsSnapshot } from "@fairlead/watch";
import { RequestError } from "../server/request-error.ts";
import type { AgentSetup } from "./agent-setup.ts";
import type { LiveCluster } from "./cluster.ts";

/** A hypothetical change. */
export interface Change {
  /** Manifests of Services and EndpointSlices that come, or take the place of those of their names; "": none. */
  readonly manifests: string;
  /** One more CIDR of another network; "": none. */
  readonly excludeCIDR: string;
}

/** The plans of a node without and with a change, of the services only that it is about. */
export interface ChangedPlans {
  readonly before: PlannedNode;
  readonly after: PlannedNode;
  /** Those of which anything is planned differently. */
  readonly services: readonly ServiceKey[];
}

/**
 * Plans a node as if the change had been made.
 *
 * @throws RequestError for a change that is none
 */
export async function changedPlans(
  cluster: LiveCluster,
  setup: AgentSetup,
  nodeName: string,
  change: Change,
): Promise<ChangedPlans> {
  await cluster.ready;
  const state = copyOf(cluster.state);
  if (change.manifests.trim() !== "") await addManifests(state, change.manifests, nodeName);
  const learned = cluster.learning?.now();
  const now = learned === undefined ? setup : withLearned(setup, learned);
  const changed = { ...now, filter: filterWith(now, change.excludeCIDR) };
  const node = cluster.nodes.get(nodeName);
  const plan = (of: AgentSetup, objects: ClusterState, services?: readonly ServiceKey[]) => {
    const objectsOfNode = { state: objects, problems: [], ...(node && { node }) };
    return inSlices(planNodeSteps({ ...of, cluster: objectsOfNode, nodeName, ...(services && { services }) }));
  };
  const whole = await plan(changed, state);
  const services =
    now === setup
      ? await cluster.withPlan(nodeName, (planned) => differing(planned, whole))
      : differing(await plan(now, cluster.state), whole);
  return {
    before: await plan(now, cluster.state, services),
    after: await plan(changed, state, services),
    services,
  };
}

/** As if what was learned were configured; what namespaces decide is left out on both sides of the comparison. */
function withLearned(setup: AgentSetup, { decision }: LearnedOnce): AgentSetup {
  const { clusterCIDRs, excludeCIDRs, ownCIDRs, neutralAddresses } = decision;
  return {
    ...setup,
    config: { ...setup.config, clusterCIDRs },
    filter: { ...setup.filter, clusterCIDRs, excludeCIDRs, ownCIDRs, neutralAddresses },
  };
}

/** The objects themselves are never changed: both states hold the same ones. */
function copyOf(from: ClusterState): ClusterState {
  const copy = new ClusterState();
  for (const key of from.keys()) {
    const service = from.service(key);
    if (service !== undefined) copy.upsertService(service);
    for (const slice of from.slices(key)) copy.upsertSlice(slice);
  }
  return copy;
}

async function addManifests(state: ClusterState, manifests: string, nodeName: string): Promise<void> {
  const problems: string[] = [];
  let found = 0;
  const { services, endpointSlices } = subscriptions({
    state,
    problems: {
      object: (kind, namespace, name, all) => {
        found += 1;
        for (const { field, reason } of all) problems.push(`${kind} ${namespace}/${name}: ${field} ${reason}`);
      },
    },
    onChange: () => {},
    onNode: () => {},
    onSynced: () => {},
  });
  const source = createManifestsSnapshot({
    paths: ["-"],
    nodeName,
    readStandardInput: async () => Buffer.from(manifests),
    onReport: (report) => {
      if (report.type === "badObject") problems.push(String(report.error));
    },
  });
  try {
    await source.run({ services, endpointSlices }, new AbortController().signal);
  } catch (error) {
    throw new RequestError(400, error instanceof Error ? error.message.replace(/^standard input/, "manifests") : "");
  }
  if (problems.length > 0) throw new RequestError(400, problems.join("; "));
  if (found === 0) throw new RequestError(400, "manifests: neither a Service nor an EndpointSlice is in them");
}

/** @throws RequestError saying what would be right */
function filterWith({ filter }: AgentSetup, excludeCIDR: string): AgentSetup["filter"] {
  if (excludeCIDR.trim() === "") return filter;
  const checked = checkCIDR(excludeCIDR.trim());
  if ("problem" in checked) throw new RequestError(400, `CIDR ${excludeCIDR}: ${checked.problem}`);
  return { ...filter, excludeCIDRs: [...filter.excludeCIDRs, checked.cidr] };
}

function differing(before: PlannedNode, after: PlannedNode): readonly ServiceKey[] {
  const found = new Set<ServiceKey>();
  for (const family of IP_FAMILIES) {
    const [old, now] = [before.planner.plan(family).groups, after.planner.plan(family).groups];
    for (const id of new Set([...old.keys(), ...now.keys()])) {
      const [one, other] = [old.get(id), now.get(id)];
      const service = one?.service ?? other?.service;
      if (service !== undefined && JSON.stringify(one) !== JSON.stringify(other)) found.add(service);
    }
  }
  return [...found].sort();
}

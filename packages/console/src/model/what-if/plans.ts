import { IP_FAMILIES, inSlices } from "@fairlead/base";
import { ClusterState, type ServiceKey } from "@fairlead/core";
import { type PlannedNode, planNodeSteps } from "@fairlead/inspect";
import type { LearnedOnce } from "@fairlead/intake";
import type { OtherSubscription } from "@fairlead/watch";
import type { OwnerMove, WhatIfNetworks } from "../../protocol/index.ts";
import type { AgentSetup } from "../agent-setup.ts";
import type { LiveCluster } from "../cluster.ts";
import { type Change, changedSetup } from "./change.ts";
import { networksChange, ownerMoves } from "./hands.ts";
import { NetworksReading } from "./learned.ts";
import { type PastedObjects, readPasted } from "./pasted.ts";

/** The plans of a node without and with a change, of the services only that it is about. */
export interface ChangedPlans {
  readonly before: PlannedNode;
  readonly after: PlannedNode;
  /** How the agents would be set up. */
  readonly setup: AgentSetup;
  /** Those of which anything is planned differently. */
  readonly services: readonly ServiceKey[];
  /** Those that get another owner. */
  readonly owners: readonly OwnerMove[];
  /** Absent: nothing is learned, neither without nor with the change. */
  readonly networks?: WhatIfNetworks;
}

/** What decides about a cluster: its objects, the configuration, and what is learned of networks by both. */
interface Side {
  readonly setup: AgentSetup;
  readonly state: ClusterState;
  readonly learned?: LearnedOnce;
}

/**
 * Plans a node as if the change had been made. Both sides are what agents decide that start now, without what an agent
 * keeps for a while of objects that are gone.
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
  const [old, now] = [
    await sideOf(cluster, setup, nodeName, ""),
    await sideOf(cluster, changedSetup(setup, change), nodeName, change.manifests),
  ];
  const node = cluster.nodes.get(nodeName);
  const plan = ({ setup: of, state, learned }: Side, services?: readonly ServiceKey[]) => {
    const objects = { state, problems: [], ...(node && { node }), ...(learned && { learned }) };
    return inSlices(planNodeSteps({ ...of, cluster: objects, nodeName, ...(services && { services }) }));
  };
  const [before, after] = [await plan(old), await plan(now)];
  const services = differing(before, after);
  const networks = networksChange(old.learned, now.learned);
  return {
    before: await plan(old, services),
    after: await plan(now, services),
    setup: now.setup,
    services,
    owners: ownerMoves(before.planner, after.planner),
    ...(networks && { networks }),
  };
}

async function sideOf(cluster: LiveCluster, setup: AgentSetup, nodeName: string, manifests: string): Promise<Side> {
  const { config, networks: settings } = setup;
  const isChanged = manifests.trim() !== "";
  const state = isChanged ? copyOf(cluster.state) : cluster.state;
  const networks = settings && new NetworksReading(settings);
  const pasted = isChanged
    ? await readPasted({ manifests, nodeName, config, state, others: networks?.others ?? [] })
    : new Map<OtherSubscription, PastedObjects>();
  if (networks === undefined) return { setup, state };
  await networks.read(cluster.source, pasted);
  return { setup, state, learned: networks.decide(state) };
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

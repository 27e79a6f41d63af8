import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type EndpointSlice,
  type GroupChange,
  type IPFamily,
  Planner,
  type Service,
} from "@fairlead/core";
import type { ObjectChange, Subscriptions } from "@fairlead/watch";

const NO_MEMORY = { get: () => undefined };

/**
 * Follows Services and EndpointSlices, and gives what changed of their ports and endpoints: the service model of
 * Fairlead, for no node in particular.
 *
 * @param onChanges called one at a time, from the first complete lists on
 */
export function followServices(
  families: readonly IPFamily[],
  onChanges: (changes: readonly GroupChange[]) => Promise<void>,
): Subscriptions<Service, EndpointSlice> {
  const state = new ClusterState();
  const planner = createPlanner(families);
  const incomplete = new Set(["services", "endpointSlices"]);
  let turn: Promise<void> = Promise.resolve();
  const replan = async () => {
    if (incomplete.size > 0 || !state.dirty) return;
    const steps = planner.replan(state, state.takeDirty().services, NO_MEMORY);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    await onChanges([...step.value.changes.values()].flatMap(({ groups }) => [...groups.values()]));
  };
  const inTurn = () => {
    turn = turn.then(replan);
    return turn;
  };
  return {
    services: {
      decode: (raw) => decodeService(raw).object,
      onChange: (change) => {
        if (change.type === "upsert") state.upsertService(change.object);
        else if (change.type === "delete") state.deleteService(...parts(change));
        else incomplete.delete("services");
        return inTurn();
      },
    },
    endpointSlices: {
      decode: (raw) => decodeEndpointSlice(raw).object,
      onChange: (change) => {
        if (change.type === "upsert") state.upsertSlice(change.object);
        else if (change.type === "delete") state.deleteSlice(...parts(change));
        else incomplete.delete("endpointSlices");
        return inTurn();
      },
    },
  };
}

function createPlanner(families: readonly IPFamily[]): Planner {
  return new Planner({
    nodeName: "",
    families,
    nodeIPs: {},
    detectors: {},
    nodePortAddresses: {},
    masqueradeAll: false,
    semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
  });
}

function parts({ key }: Extract<ObjectChange<unknown>, { type: "delete" }>): [namespace: string, name: string] {
  const slash = key.indexOf("/");
  return [key.slice(0, slash), key.slice(slash + 1)];
}

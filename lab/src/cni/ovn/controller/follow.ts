import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type EndpointSlice,
  type Service,
  type ServiceKey,
} from "@fairlead/core";
import type { ObjectChange, Subscriptions } from "@fairlead/watch";
import type { NbCommand } from "../topology.ts";
import { balancerCommands, type VirtualAddress, virtualAddresses } from "./balancers.ts";
import { type FollowedService, VPC_ANNOTATION } from "./vpc.ts";

/** What a change of services and endpoints asks for. */
export interface ServiceChanges {
  readonly commands: readonly NbCommand[];
  /** The services that changed and are there. */
  readonly services: readonly FollowedService[];
}

const KEPT = { annotations: new Set([VPC_ANNOTATION]) };

/**
 * Follows Services and EndpointSlices.
 *
 * @param onChanges called one at a time, from the first complete lists on
 */
export function followServices(
  onChanges: (changes: ServiceChanges) => Promise<void>,
): Subscriptions<Service, EndpointSlice> {
  const state = new ClusterState();
  const known = new Map<ServiceKey, readonly VirtualAddress[]>();
  const incomplete = new Set(["services", "endpointSlices"]);
  let turn: Promise<void> = Promise.resolve();
  const look = (key: ServiceKey) => {
    const [service, slices] = [state.service(key), state.slices(key)];
    const after = virtualAddresses(service, slices);
    const commands = balancerCommands(known.get(key) ?? [], after);
    known.set(key, after);
    return { commands, services: service === undefined ? [] : [{ service, slices }] };
  };
  const takeAll = async () => {
    if (incomplete.size > 0 || !state.dirty) return;
    const looked = [...state.takeDirty().services].map(look);
    await onChanges({
      commands: looked.flatMap(({ commands }) => commands),
      services: looked.flatMap(({ services }) => services),
    });
  };
  const inTurn = () => {
    turn = turn.then(takeAll);
    return turn;
  };
  return {
    services: {
      decode: (raw) => decodeService(raw, undefined, KEPT).object,
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

function parts({ key }: Extract<ObjectChange<unknown>, { type: "delete" }>): [namespace: string, name: string] {
  const slash = key.indexOf("/");
  return [key.slice(0, slash), key.slice(slash + 1)];
}

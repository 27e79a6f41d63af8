import { familyOf, IP_FAMILIES } from "@fairlead/base";
import { FRONTEND_KINDS, type ServiceKey } from "@fairlead/core";
import type { PlannedNode } from "../node-plan.ts";
import type { Target } from "./target.ts";

/** A service that a target means, and the one port of it that it means. */
export interface FoundTarget {
  readonly service: ServiceKey;
  /** Name or number; absent: all of them. */
  readonly port?: string;
}

/** The services that a target means; of an address without a port there may be several. */
export function findTarget(planned: PlannedNode, target: Target): readonly FoundTarget[] {
  switch (target.kind) {
    case "service": {
      const { service, port } = target;
      return [port === undefined ? { service } : { service, port }];
    }
    case "host":
      return withAddress(planned.state, target.address);
    case "nodePort":
      return portsOf(behindNodePort(planned, target));
    case "address":
      return portsOf(held(planned, target) ?? asked(planned, target));
  }
}

function portsOf(found: ServicePortMatch | undefined): readonly FoundTarget[] {
  return found === undefined ? [] : [{ service: found.service, port: String(found.port) }];
}

/** Those that are served there, and those that have an endpoint there. */
function withAddress(state: PlannedNode["state"], address: string): readonly FoundTarget[] {
  const has = (key: ServiceKey) => {
    const { clusterIPs = [], externalIPs = [], loadBalancerIPs = [] } = state.service(key) ?? {};
    return (
      [...clusterIPs, ...externalIPs, ...loadBalancerIPs].includes(address) ||
      state.slices(key).some(({ endpoints }) => endpoints.some((one) => one.address === address))
    );
  };
  const keys = [...state.keys()].filter((key) => state.service(key) !== undefined && has(key));
  return keys.sort().map((service) => ({ service }));
}

/** In either family: by what is programmed here, else by the objects. */
function behindNodePort({ planner, state }: PlannedNode, { port, protocol }: NodePort): ServicePortMatch | undefined {
  const groups = IP_FAMILIES.flatMap((family) => planner.lookup(family).atNodePort(protocol, port) ?? []);
  for (const key of [...groups.map(({ service }) => service), ...state.keys()]) {
    const spec = state.service(key)?.ports.find((one) => one.nodePort === port && one.protocol === protocol);
    if (spec !== undefined) return { service: key, port: spec.port };
  }
  return undefined;
}

type Address = Extract<Target, { kind: "address" }>;
type NodePort = Extract<Target, { kind: "nodePort" }>;
type ServicePortMatch = { readonly service: ServiceKey; readonly port: number };

/** By the plan: what is programmed here. */
function held({ planner, state }: PlannedNode, { address, port, protocol }: Address): ServicePortMatch | undefined {
  const lookup = planner.lookup(familyOf(address));
  const group = lookup.at(protocol, address, port);
  const called = group?.frontends.find((one) => one.address === address && one.port === port);
  if (group !== undefined && (called === undefined || FRONTEND_KINDS[called.kind].at === "address")) {
    return { service: group.service, port };
  }
  // A node port is served on addresses of the node, of which this may be one.
  const behind = group ?? lookup.atNodePort(protocol, port);
  const spec = behind && state.service(behind.service)?.ports.find(({ nodePort }) => nodePort === port);
  return behind === undefined || spec === undefined ? undefined : { service: behind.service, port: spec.port };
}

/** By the objects: what another network serves. */
function asked({ state }: PlannedNode, { address, port, protocol }: Address): ServicePortMatch | undefined {
  for (const key of state.keys()) {
    const service = state.service(key);
    if (service === undefined) continue;
    const { clusterIPs, externalIPs, loadBalancerIPs, ports } = service;
    if (![...clusterIPs, ...externalIPs, ...loadBalancerIPs].includes(address)) continue;
    if (ports.some((one) => one.port === port && one.protocol === protocol)) return { service: key, port };
  }
  return undefined;
}

import { familyOf } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import type { PlannedNode } from "../node-plan.ts";
import type { Target } from "./target.ts";

/** The service that a target means, and the one port of it; undefined: nobody has that address and port. */
export function findTarget(
  planned: PlannedNode,
  target: Target,
): { readonly service: ServiceKey; readonly port?: string } | undefined {
  if (target.kind === "service") {
    const { service, port } = target;
    return port === undefined ? { service } : { service, port };
  }
  const found = held(planned, target) ?? asked(planned, target);
  return found === undefined ? undefined : { service: found.service, port: String(found.port) };
}

type Address = Extract<Target, { kind: "address" }>;
type Found = { readonly service: ServiceKey; readonly port: number };

/** By the plan: what is programmed here. */
function held({ planner, state }: PlannedNode, { address, port, protocol }: Address): Found | undefined {
  const lookup = planner.lookup(familyOf(address));
  const group = lookup.at(protocol, address, port);
  if (group !== undefined) return { service: group.service, port };
  // A node port is served on addresses of the node, of which this may be one.
  const behind = lookup.atNodePort(protocol, port);
  const spec = behind && state.service(behind.service)?.ports.find(({ nodePort }) => nodePort === port);
  return behind === undefined || spec === undefined ? undefined : { service: behind.service, port: spec.port };
}

/** By the objects: what another network serves. */
function asked({ state }: PlannedNode, { address, port, protocol }: Address): Found | undefined {
  for (const key of state.keys()) {
    const service = state.service(key);
    if (service === undefined) continue;
    const { clusterIPs, externalIPs, loadBalancerIPs, ports } = service;
    if (![...clusterIPs, ...externalIPs, ...loadBalancerIPs].includes(address)) continue;
    if (ports.some((one) => one.port === port && one.protocol === protocol)) return { service: key, port };
  }
  return undefined;
}

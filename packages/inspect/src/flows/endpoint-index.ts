import type { EndpointSlice, IPFamily, ServiceKey, ServicePortSpec, SliceEndpoint } from "@fairlead/core";
import type { PlannedNode } from "../node-plan.ts";
import type { EndpointCondition, FlowEndpoint } from "./flow.ts";

/** What is known of an address and port as an endpoint of a service port. */
export type FindEndpoint = (
  service: ServiceKey,
  port: ServicePortSpec,
  family: IPFamily,
  address: string,
  number: number,
) => FlowEndpoint;

/** The endpoints of a planned cluster, used or not; those of a service port are read once, when it is asked for. */
export function endpointIndex({ state }: PlannedNode): FindEndpoint {
  const known = new Map<string, ReadonlyMap<string, SliceEndpoint>>();
  return (service, port, family, address, number) => {
    const key = `${service} ${family} ${port.protocol} ${port.name}`;
    const endpoints = known.get(key) ?? endpointsOf(state.slices(service), port, family);
    known.set(key, endpoints);
    const found = endpoints.get(`${address} ${number}`);
    const { nodeName } = found ?? {};
    return { address, port: number, condition: conditionOf(found), ...(nodeName !== undefined && { nodeName }) };
  };
}

function endpointsOf(
  slices: readonly EndpointSlice[],
  { name, protocol }: ServicePortSpec,
  family: IPFamily,
): ReadonlyMap<string, SliceEndpoint> {
  const endpoints = new Map<string, SliceEndpoint>();
  for (const slice of slices) {
    if (slice.family !== family) continue;
    for (const { port } of slice.ports.filter((one) => one.name === name && one.protocol === protocol)) {
      for (const endpoint of slice.endpoints) {
        const key = `${endpoint.address} ${port}`;
        // While an endpoint moves from one slice to another it stands in both.
        if (endpoints.get(key)?.ready !== true) endpoints.set(key, endpoint);
      }
    }
  }
  return endpoints;
}

function conditionOf(endpoint: SliceEndpoint | undefined): EndpointCondition {
  if (endpoint === undefined) return "gone";
  if (endpoint.terminating) return "terminating";
  return endpoint.ready ? "ready" : "not-ready";
}

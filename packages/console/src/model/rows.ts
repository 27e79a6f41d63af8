import { IP_FAMILIES, type IPFamily, socketText } from "@fairlead/base";
import type { ClusterView, EndpointSlice, Ownership, Planner, Service, ServiceKey } from "@fairlead/core";
import type { MirroredSlices } from "@fairlead/intake";
import type { ServiceRow } from "../protocol/index.ts";

interface RowParts {
  readonly state: ClusterView;
  readonly mirrored: MirroredSlices;
  readonly planner: Planner;
}

/**
 * What the list says of a service.
 *
 * @param nodeName the node that is looked from
 * @returns undefined: there is no such service
 */
export function serviceRow(
  { state, mirrored, planner }: RowParts,
  service: ServiceKey,
  nodeName: string,
): ServiceRow | undefined {
  const object = state.service(service);
  if (object === undefined) return undefined;
  return {
    service,
    owners: ownersOf(planner, service),
    frontends: frontendsOf(object),
    ...counts(slicesOf(state, mirrored, service), nodeName),
    ...(object.created !== undefined && { created: object.created }),
  };
}

function ownersOf(planner: Planner, service: ServiceKey): Partial<Record<IPFamily, Ownership>> {
  const owners = IP_FAMILIES.flatMap((family) => {
    const decision = planner.ownership(service, family);
    return decision === undefined ? [] : [[family, decision.ownership] as const];
  });
  return Object.fromEntries(owners);
}

/** Every frontend that the object asks for, also those that another program serves. */
function frontendsOf({ clusterIPs, externalIPs, loadBalancerIPs, ports }: Service): readonly string[] {
  const addresses = [...clusterIPs, ...externalIPs, ...loadBalancerIPs];
  return ports.flatMap(({ port, protocol, nodePort }) => {
    const suffix = protocol === "TCP" ? "" : `/${protocol.toLowerCase()}`;
    const sockets = addresses.map((address) => `${socketText(address, port)}${suffix}`);
    return nodePort === undefined ? sockets : [...sockets, `node port ${nodePort}${suffix}`];
  });
}

/** Where the pods really are: a user-defined network's in the place of the default one's. */
function slicesOf(state: ClusterView, mirrored: MirroredSlices, service: ServiceKey): readonly EndpointSlice[] {
  const own = mirrored.of(service).map(({ slice }) => slice);
  return own.length > 0 ? own : state.slices(service);
}

function counts(slices: readonly EndpointSlice[], nodeName: string) {
  const [all, ready, local, draining] = [new Set(), new Set(), new Set(), new Set()];
  for (const { endpoints } of slices) {
    for (const endpoint of endpoints) {
      const { address } = endpoint;
      all.add(address);
      if (endpoint.ready) ready.add(address);
      if (endpoint.ready && endpoint.nodeName === nodeName) local.add(address);
      if (endpoint.terminating && endpoint.serving) draining.add(address);
    }
  }
  return { endpoints: all.size, ready: ready.size, local: local.size, draining: draining.size };
}

/** The endpoints of a Service on a secondary network, as upstream's endpointslice controller has them. */

import { familyOf, type IPFamily, inAnyOf } from "@fairlead/base";
import type { SlicePort } from "../requests.ts";
import {
  NETWORK_STATUS,
  type NetworkService,
  type NetworkStatus,
  type Pod,
  type ProblemReason,
  SERVICE_NETWORK,
  type ServicePort,
  type SliceProblem,
} from "./decode.ts";

/** An endpoint as discovery.k8s.io/v1 has it; the fields that are written, in one order. */
export interface Endpoint {
  readonly addresses: readonly [string];
  readonly conditions: { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean };
  readonly targetRef: { readonly kind: "Pod"; readonly namespace: string; readonly name: string; readonly uid: string };
  readonly nodeName?: string;
  readonly zone?: string;
  readonly hints?: Hints;
}

interface Hints {
  readonly forZones?: readonly { readonly name: string }[];
  readonly forNodes?: readonly { readonly name: string }[];
}

/** Endpoints of one family that have the same ports: what may stand in one slice. */
export interface EndpointSet {
  readonly family: IPFamily;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly Endpoint[];
}

/** What endpoints need besides the Service and its pods. */
export interface EndpointFacts {
  /** Label topology.kubernetes.io/zone of a Node. */
  readonly zoneOf: (nodeName: string) => string | undefined;
  readonly inServiceCIDR: (address: string) => boolean;
}

/** Addresses that the API server refuses in a slice (ValidateEndpointIP), and with them the whole slice. */
const isUnusable = inAnyOf([
  ...["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  ...["::/128", "::1/128", "fe80::/10", "ff00::/8"],
]);

/**
 * The endpoints of a Service on its network.
 *
 * Conditions are those of upstream's controller (podToEndpoint of k8s.io/endpointslice): serving follows the pod's
 * readiness, ready is not given while it terminates, but for publishNotReadyAddresses.
 *
 * @param pods that the Service selects
 */
export function endpointSets(
  service: NetworkService,
  pods: Iterable<Pod>,
  facts: EndpointFacts,
): { readonly sets: readonly EndpointSet[]; readonly problems: readonly SliceProblem[] } {
  const sets = new Map<string, { family: IPFamily; ports: readonly SlicePort[]; endpoints: Endpoint[] }>();
  const problems: SliceProblem[] = [];
  for (const pod of pods) {
    const found = addressesOn(service, pod, facts);
    if ("reason" in found) {
      // What goes away anyway is not worth an event.
      if (!pod.terminating) problems.push({ ...found, pod: pod.name });
      continue;
    }
    const ports = service.ports.flatMap((port) => portOn(port, pod));
    for (const address of found.addresses) {
      const family = familyOf(address);
      const key = `${family} ${JSON.stringify(ports)}`;
      const set = sets.get(key) ?? { family, ports, endpoints: [] };
      sets.set(key, set);
      set.endpoints.push(endpointOf(service, pod, address, facts));
    }
  }
  return { sets: [...sets.values()], problems };
}

type Found = { readonly addresses: readonly string[] } | Pick<SliceProblem, "reason" | "message">;

/** The first address of each of the Service's families: the others have no meaning in a slice (KEP-752). */
function addressesOn({ network, families }: NetworkService, { networks }: Pod, facts: EndpointFacts): Found {
  if (networks === undefined) return { reason: "NoNetworkStatus", message: `has no annotation ${NETWORK_STATUS}` };
  if (networks === "invalid") return { reason: "InvalidNetworkStatus", message: INVALID_STATUS };
  const attached = networks.filter((status) => status.network === network);
  const [only] = attached;
  if (only === undefined) return problem("NoNetworkAddress", `is not attached to network ${network}`);
  if (attached.length > 1) {
    return problem("SeveralInterfaces", `has ${attached.length} interfaces on network ${network}; one is needed`);
  }
  const addresses = families.flatMap((family) => firstOf(only, family));
  if (addresses.length === 0) {
    return problem("NoNetworkAddress", `has no ${families.join(" or ")} address on network ${network}`);
  }
  const unusable = addresses.find(isUnusable);
  if (unusable !== undefined) return problem("NoNetworkAddress", `has address ${unusable}, which is not reachable`);
  const taken = addresses.find(facts.inServiceCIDR);
  if (taken !== undefined) return problem("AddressInServiceCIDR", `has address ${taken}, which is in a service CIDR`);
  return { addresses };
}

const INVALID_STATUS = `has an annotation ${NETWORK_STATUS} that is not a list of networks with their addresses`;

function problem(reason: ProblemReason, message: string): Found {
  return { reason, message: `${message} (annotation ${SERVICE_NETWORK})` };
}

function firstOf({ addresses }: NetworkStatus, family: IPFamily): readonly string[] {
  const first = addresses.find((address) => familyOf(address) === family);
  return first === undefined ? [] : [first];
}

/** A pod without the named port has no such port in its slice, as upstream's. */
function portOn({ name, protocol, target }: ServicePort, { namedPorts }: Pod): readonly SlicePort[] {
  if (typeof target === "number") return [{ name, protocol, port: target }];
  const found = namedPorts.find((port) => port.name === target && port.protocol === protocol);
  return found === undefined ? [] : [{ name, protocol, port: found.port }];
}

function endpointOf(service: NetworkService, pod: Pod, address: string, { zoneOf }: EndpointFacts): Endpoint {
  const { namespace, name, uid, nodeName, terminating } = pod;
  const zone = nodeName === undefined ? undefined : zoneOf(nodeName);
  const ready = service.publishNotReadyAddresses || (pod.ready && !terminating);
  const hints = ready ? hintsOf(service, nodeName, zone) : undefined;
  return {
    addresses: [address],
    conditions: { ready, serving: pod.ready, terminating },
    targetRef: { kind: "Pod", namespace, name, uid },
    ...(nodeName !== undefined && { nodeName }),
    ...(zone !== undefined && { zone }),
    ...(hints && { hints }),
  };
}

/** As upstream derives them from spec.trafficDistribution (KEP-2433, KEP-3015). */
function hintsOf(
  { distribution }: NetworkService,
  node: string | undefined,
  zone: string | undefined,
): Hints | undefined {
  const forZones = zone === undefined ? undefined : [{ name: zone }];
  const forNodes = distribution !== "PreferSameNode" || node === undefined ? undefined : [{ name: node }];
  if (distribution === undefined || (forZones === undefined && forNodes === undefined)) return undefined;
  return { ...(forZones && { forZones }), ...(forNodes && { forNodes }) };
}

/** Load balancers for the services that the controller follows. */

import { request } from "node:https";
import { BlockList, isIPv6 } from "node:net";
import { text } from "node:stream/consumers";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type EndpointSlice,
  type Protocol,
  type Service,
  type ServiceKey,
  type ServicePortSpec,
} from "@fairlead/core";
import type { ApiConnection, ObjectChange, Subscriptions } from "@fairlead/watch";
import type { NbCommand } from "../daemons.ts";

/** An address and port of a service, with the endpoints that one of OVN's load balancers has for it. */
interface VirtualAddress {
  /** One of `balancers`. */
  readonly balancer: string;
  /** `10.96.0.9:80`, `[fd00:10:96::9]:80` */
  readonly at: string;
  /** The same of each endpoint, separated by commas. */
  readonly backends: string;
}

const PROTOCOLS = ["tcp", "udp", "sctp"] as const;
/** kube-ovn has the same for every service with affinity (util.DefaultServiceSessionStickinessTimeout). */
const AFFINITY_SECONDS = 10_800;

/** Makes them, without any service, and puts them on these switches (pkg/controller/init.go). */
export function createBalancers(switches: readonly string[]): readonly NbCommand[] {
  const plain = PROTOCOLS.map((protocol) => [
    ...[`name=cluster-${protocol}-loadbalancer`, `protocol=${protocol}`],
    // What is tracked of a UDP client ends with its endpoint.
    ...(protocol === "udp" ? ["options:ct_flush=true"] : []),
  ]);
  const session = PROTOCOLS.map((protocol) => [
    ...[`name=cluster-${protocol}-session-loadbalancer`, `protocol=${protocol}`, "selection_fields=ip_src"],
    `options:affinity_timeout=${AFFINITY_SECONDS}`,
  ]);
  return [...plain, ...session].flatMap(([name = "", ...columns]) => [
    ["create", "load_balancer", name, ...columns],
    ...switches.map((one) => ["ls-lb-add", one, name.slice("name=".length)]),
  ]);
}

/**
 * What kube-ovn's controller gives OVN for a service, with endpoints of any network: each ClusterIP and port with all
 * ready endpoints, without regard to traffic policies; nothing where there are none, so that such packets leave OVN
 * (pkg/controller/endpoint_slice.go, handleUpdateEndpointSlice).
 */
function virtualAddresses(service: Service | undefined, slices: readonly EndpointSlice[]): readonly VirtualAddress[] {
  if (service === undefined) return [];
  return service.clusterIPs.flatMap((address) =>
    service.ports.flatMap((port) => {
      const backends = slices
        .filter(({ family }) => (family === "IPv6") === isIPv6(address))
        .flatMap((slice) => readyIn(slice, port));
      const balancer = nameOf(port.protocol, service.affinitySeconds !== undefined);
      return backends.length === 0 ? [] : [{ balancer, at: socket(address, port.port), backends: backends.join(",") }];
    }),
  );
}

/** The commands that lead from one state of a service to another. */
function balancerCommands(before: readonly VirtualAddress[], after: readonly VirtualAddress[]): readonly NbCommand[] {
  const same = (one: VirtualAddress) => (other: VirtualAddress) =>
    one.balancer === other.balancer && one.at === other.at;
  const gone = before.filter((one) => !after.some(same(one)));
  const changed = after.filter((one) => before.find(same(one))?.backends !== one.backends);
  return [
    ...gone.map(({ balancer, at }) => ["remove", "load_balancer", balancer, "vips", `"${at}"`]),
    ...changed.map(({ balancer, at, backends }) => ["set", "load_balancer", balancer, `vips:"${at}"="${backends}"`]),
  ];
}

interface FollowedService {
  readonly service: Service;
  readonly slices: readonly EndpointSlice[];
}

/** What a change of services and endpoints asks for. */
interface ServiceChanges {
  readonly commands: readonly NbCommand[];
  readonly services: readonly FollowedService[];
}

/** Which of kube-ovn's networks a Service belongs to; its controller writes it on every Service with a ClusterIP. */
const VPC_ANNOTATION = "ovn.kubernetes.io/vpc";

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

/** kube-ovn's `--cluster-router`, unless the user chooses another name. */
const DEFAULT_VPC = "ovn-cluster";

/**
 * The annotation that kube-ovn's controller would write: the VPC of the endpoints where one is a pod of OVN's, else
 * what is written, else the default one (pkg/controller/endpoint_slice.go, getVpcAndSubnetForEndpoints).
 *
 * @param podCIDRs OVN's, all of them in the default VPC
 * @returns undefined: it is written
 */
export function vpcToWrite({ service, slices }: FollowedService, podCIDRs: readonly string[]): string | undefined {
  const written = service.annotations[VPC_ANNOTATION];
  const own = blockList(podCIDRs);
  const endpoints = slices.flatMap((slice) => slice.endpoints);
  const isOwn = endpoints.some(({ address }) => own.check(address, isIPv6(address) ? "ipv6" : "ipv4"));
  const vpc = isOwn ? DEFAULT_VPC : (written ?? DEFAULT_VPC);
  return vpc === written ? undefined : vpc;
}

const TIMEOUT_MS = 15_000;

/**
 * Writes the annotation with the service's VPC.
 *
 * @returns the status; 404: the service has gone meanwhile
 */
export async function annotate(
  { server, credentials }: ApiConnection,
  { namespace, name }: Service,
  vpc: string,
): Promise<number> {
  const { headers, tls } = await credentials();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const call = request(`${server}/api/v1/namespaces/${namespace}/services/${name}`, {
    ...tls,
    method: "PATCH",
    timeout: TIMEOUT_MS,
    headers: { ...headers, "content-type": "application/merge-patch+json" },
  });
  call.on("timeout", () => call.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)));
  call.on("error", reject);
  call.on("response", (response) => {
    text(response).then(() => resolve(response.statusCode ?? 0), reject);
  });
  call.end(JSON.stringify({ metadata: { annotations: { [VPC_ANNOTATION]: vpc } } }));
  return promise;
}

/** kube-ovn's load balancers of the default VPC, which hold the services of the whole cluster. */
function nameOf(protocol: Protocol, affinity: boolean): string {
  return `cluster-${protocol.toLowerCase()}${affinity ? "-session" : ""}-loadbalancer`;
}

function readyIn({ ports, endpoints }: EndpointSlice, { name }: ServicePortSpec): readonly string[] {
  const found = ports.find((one) => one.name === name);
  if (found === undefined) return [];
  return endpoints.filter(({ ready }) => ready).map(({ address }) => socket(address, found.port));
}

function socket(address: string, port: number): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

function parts({ key }: Extract<ObjectChange<unknown>, { type: "delete" }>): [namespace: string, name: string] {
  const slash = key.indexOf("/");
  return [key.slice(0, slash), key.slice(slash + 1)];
}

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", length = ""] = cidr.split("/");
    list.addSubnet(address, Number(length), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

/** The services behind a name, an address, a node port or a pod's address. */

import { familyOf, IP_FAMILIES, parseAddress } from "@fairlead/base";
import { FRONTEND_KINDS, type Protocol, type ServiceKey, serviceKey } from "@fairlead/core";
import type { PlannedNode } from "./node-plan.ts";

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

/** What is asked about. */
export type Target =
  | {
      readonly kind: "service";
      readonly service: ServiceKey;
      /** Name or number of a port; absent: all of them. */
      readonly port?: string;
    }
  | {
      readonly kind: "address";
      readonly address: string;
      readonly port: number;
      readonly protocol: Protocol;
    }
  /** Every service that has the address, as a frontend's or an endpoint's. */
  | {
      readonly kind: "host";
      readonly address: string;
    }
  | { readonly kind: "nodePort"; readonly port: number; readonly protocol: Protocol };

/**
 * Reads `web`, `svc/web`, `kube-system/kube-dns:dns`, `10.96.0.10:53/udp`, `[fd00::10]:80`, `10.96.0.10`, `:30080`.
 *
 * @param namespace of a service that is named without one. Default `default`
 * @throws RangeError that quotes the text and says what would be right
 */
export function parseTarget(text: string, namespace = "default"): Target {
  const host = parseAddress(/^\[(.+)\]$/.exec(text)?.[1] ?? text);
  if (host !== undefined) return { kind: "host", address: host.text };
  return parseSocket(text) ?? parseService(text, namespace);
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

const FORM =
  "must be [NAMESPACE/]SERVICE[:PORT], svc/SERVICE, ADDRESS[:PORT[/PROTOCOL]] or :NODEPORT, such as shop/web, web:http, 10.96.0.10:53/udp or :30080";

function parseSocket(text: string): Target | undefined {
  const found = /^(?:\[(?<six>[^\]]+)\]|(?<four>[\d.]+))?:(?<port>\d{1,5})(?:\/(?<protocol>\w+))?$/.exec(text);
  if (found?.groups === undefined) return undefined;
  const { six, four, port = "", protocol = "tcp" } = found.groups;
  const number = Number(port);
  const known = (["TCP", "UDP", "SCTP"] as const).find((one) => one === protocol.toUpperCase());
  if (number < 1 || number > 65_535 || known === undefined) throw refusal(text);
  const written = six ?? four;
  if (written === undefined) return { kind: "nodePort", port: number, protocol: known };
  const address = parseAddress(written);
  if (address === undefined) throw refusal(text);
  return { kind: "address", address: address.text, port: number, protocol: known };
}

/** What kubectl calls a service's type; `svc/web` is no service of a namespace svc, which -n names. */
const TYPES: ReadonlySet<string> = new Set(["svc", "service", "services"]);

function parseService(text: string, otherwise: string): Target {
  const found = /^(?:(?<namespace>[a-z0-9-]+)\/)?(?<name>[a-z0-9][a-z0-9.-]*)(?::(?<port>[a-z0-9-]+))?$/.exec(text);
  if (found?.groups === undefined) throw refusal(text);
  const { namespace, name = "", port } = found.groups;
  // 10.96.0.999 is no service's name either.
  if (/^[\d.]+$/.test(name) && name.includes(".")) throw refusal(text);
  const service = serviceKey(namespace === undefined || TYPES.has(namespace) ? otherwise : namespace, name);
  return port === undefined ? { kind: "service", service } : { kind: "service", service, port };
}

function refusal(text: string): RangeError {
  return new RangeError(`${JSON.stringify(text)} ${FORM}`);
}

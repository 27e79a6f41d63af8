/** The packet that options describe. */

import { isIP } from "node:net";
import { familyOf, IP_FAMILIES, isLoopback } from "@fairlead/base";
import { type IPFamily, nodePortChoice, type Protocol, type Service, type ServicePortSpec } from "@fairlead/core";
import {
  addressIn,
  findTarget,
  OUTER_INTERFACE,
  outsideAddress,
  type PlannedNode,
  type Target,
} from "@fairlead/inspect";
import { type Environment, type Packet, routing } from "@fairlead/trace";
import type { traceOptions } from "../../facts/plans.ts";
import { type OptionValues, portOf } from "../../frame/command.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";

type Values = OptionValues<typeof traceOptions>;

export interface Destination {
  readonly family: IPFamily;
  readonly address: string;
  readonly port?: number;
  readonly protocol: string;
  /** Absent: no Gateway owns the Service, or no service was looked up. */
  readonly owner?: Owner;
}

/** The Gateway that owns a Service. */
export interface Owner {
  readonly gateway: string;
  /** Its route that serves the port; absent: none is known. */
  readonly route?: string;
}

const TO = /^(?:\[([^\]]+)\]|([^:/]+))(?::(\d+))?(?:\/([a-z0-9-]+))?$/i;
const PROTOCOLS_WITH_PORTS: ReadonlySet<string> = new Set(["tcp", "udp", "sctp"]);

/** The error of a --to that is not a destination. */
export const NO_DESTINATION =
  "must be ADDRESS:PORT/PROTOCOL, such as 10.96.0.10:53/udp or [fd00::1]:80, or a service, such as shop/web:http or :30080";

/** A destination that is written as an address; undefined: it is not written so. */
export function socketDestination({ to }: Pick<Values, "to">): Destination | undefined {
  const [, bracketed, plain, port, protocol = "tcp"] = TO.exec(to ?? "") ?? [];
  const address = bracketed ?? plain ?? "";
  if (isIP(address) === 0) return undefined;
  const name = protocol.toLowerCase();
  const hasPorts = PROTOCOLS_WITH_PORTS.has(name);
  // An address without anything behind it may be a service's.
  if (hasPorts && port === undefined && !to?.includes("/")) return undefined;
  if (hasPorts !== (port !== undefined)) throw new UsageError(`--to=${to}: ${NO_DESTINATION}`);
  const family = isIP(address) === 4 ? "IPv4" : "IPv6";
  return { family, address, protocol: name, ...(port !== undefined && { port: portOf("to", port) }) };
}

function destinationAt(address: string, port: number, protocol: Protocol): Destination {
  return { family: familyOf(address), address, port, protocol: protocol.toLowerCase() };
}

const SPORT = 40_000;

/**
 * The packet that the options describe.
 *
 * @param environment what is known of the host: its addresses and routes decide what is the node and what arrives where
 */
export function readPacket(options: Values, destination: Destination, environment: Environment): Packet {
  const { family, address, port, protocol } = destination;
  const sport = options.sport === undefined ? SPORT : portOf("sport", options.sport);
  const sender = senderOf(options, destination, environment);
  return {
    family,
    protocol,
    source: sender.source,
    destination: address,
    ...(port !== undefined && { sport, dport: port }),
    ...(sender.inInterface !== undefined && { inInterface: sender.inInterface }),
  };
}

function senderOf(
  options: Values,
  { family, address }: Destination,
  environment: Environment,
): Pick<Packet, "source" | "inInterface"> {
  const from = options.from ?? "node";
  const own = [...(environment.localAddresses ?? [])].filter((one) => familyOf(one) === family);
  const arriving = (source: string) => ({
    source,
    inInterface: options["in-interface"] ?? environment.outInterface?.(source) ?? OUTER_INTERFACE,
  });
  if (from === "node") {
    const known = options.rules === undefined || options["node-address"].length > 0;
    // What a host sends to an address of its own it sends from there.
    const source = own.includes(address) || isLoopback(address) ? address : own[0];
    if (source === undefined || !known)
      throw new UsageError(`--from=node: no ${family} address of the node is known; give --node-address`);
    return { source };
  }
  if (from === "outside") return arriving(clientOutside(options, family));
  if (from === "pod") return arriving(podAddress(options, family));
  if (isIP(from) === 0) throw new UsageError(`--from=${from}: must be an address, pod, node or outside`);
  if (familyOf(from) !== family) throw new UsageError(`--from=${from}: must be ${family}, as --to is`);
  // Only the host itself sends from loopback: such a packet begins at OUTPUT and comes in again by lo.
  const isOwn = own.includes(from) || isLoopback(from);
  return isOwn && options["in-interface"] === undefined ? { source: from } : arriving(from);
}

function clientOutside(options: Values, family: IPFamily): string {
  const address = outsideAddress(family, clusterCIDRs(options, family));
  if (address === undefined)
    throw new UsageError("--from=outside: --cluster-cidr covers all addresses; pass --from=ADDRESS");
  return address;
}

function clusterCIDRs(options: Values, family: IPFamily): readonly string[] {
  return options["cluster-cidr"].flatMap((given) => given.split(",")).filter((one) => familyOf(one) === family);
}

function podAddress(options: Values, family: IPFamily): string {
  const [cidr] = clusterCIDRs(options, family);
  if (cidr === undefined)
    throw new UsageError(`--from=pod: give the pods' ${family} CIDR with --cluster-cidr, or an address`);
  try {
    return addressIn(cidr);
  } catch {
    throw new UsageError(`--cluster-cidr=${cidr}: must be a CIDR`);
  }
}

/**
 * What the options say of the host, over what was read of it.
 *
 * @param live whether that was its kernel; a plan for ipvs mode has the services' own addresses alongside the node's
 */
export function withFacts(options: Values, family: IPFamily, read: Environment, live: boolean): Environment {
  const given = options["node-address"].filter((one) => familyOf(one) === family);
  const routes = options.route.map((text) => {
    const [cidr = "", outInterface = ""] = text.split("=");
    if (outInterface === "" || isIP(cidr.split("/")[0] ?? "") === 0)
      throw new UsageError(`--route=${text}: must be CIDR=INTERFACE`);
    return { cidr, outInterface };
  });
  return {
    ...read,
    ...(given.length > 0 && {
      localAddresses: live ? given : [...given, ...(read.localAddresses ?? [])],
    }),
    ...(routes.length > 0 && { outInterface: routing(routes) }),
  };
}

/**
 * Where a packet to a service goes: its primary ClusterIP, or for a node port the node's own address, the first one
 * that the service chooses.
 *
 * @param text as the user wrote it, for messages
 * @returns undefined: there is no such service
 */
export function serviceDestination(
  planned: PlannedNode,
  target: Exclude<Target, { kind: "address" }>,
  text: string,
): Destination | undefined {
  const found = findTarget(planned, target);
  const [first] = found;
  const service = first && planned.state.service(first.service);
  if (first === undefined || service === undefined) return undefined;
  if (target.kind === "nodePort") {
    const served = service.ports.find((one) => one.nodePort === target.port && one.protocol === target.protocol);
    return { ...atNode(planned, service, target, text), ...ownerOf(service, served) };
  }
  if (found.length > 1) {
    const names = found.map((one) => one.service).join(", ");
    throw new CommandFailure(`--to=${text}: that is an address of ${names}: name one of them, or a port`);
  }
  const spec = onlyPort(service, first.port, text);
  const { port, protocol } = spec;
  const [clusterIP = ""] = service.clusterIPs;
  const isOwn = target.kind === "host" && addressesOf(service).includes(target.address);
  return { ...destinationAt(isOwn ? target.address : clusterIP, port, protocol), ...ownerOf(service, spec) };
}

function ownerOf({ gateway }: Service, port: ServicePortSpec | undefined): Pick<Destination, "owner"> {
  if (gateway === undefined) return {};
  return { owner: { gateway, ...(port?.route !== undefined && { route: port.route }) } };
}

function atNode(
  { options }: PlannedNode,
  service: Service,
  { port, protocol }: Target & { kind: "nodePort" },
  text: string,
): Destination {
  const chosen = IP_FAMILIES.flatMap((family) => nodePortChoice(service, family, options)?.addresses ?? []);
  const address = chosen[0] ?? options.nodeIPs.IPv4 ?? options.nodeIPs.IPv6;
  if (address !== undefined) return destinationAt(address, port, protocol);
  throw new CommandFailure(`--to=${text}: no address of the node is known; give --node-address`);
}

function onlyPort({ ports }: Service, wanted: string | undefined, text: string): ServicePortSpec {
  const fitting = ports.filter(({ name, port }) => wanted === undefined || name === wanted || String(port) === wanted);
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  const names = ports.map(({ name, port, protocol }) => `${name === "" ? port : name} (${port}/${protocol})`);
  throw new CommandFailure(`--to=${text}: which port? There are: ${names.join(", ")}`);
}

function addressesOf({ clusterIPs, externalIPs, loadBalancerIPs }: Service): readonly string[] {
  return [...clusterIPs, ...externalIPs, ...loadBalancerIPs];
}

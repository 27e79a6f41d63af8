import { IP_FAMILIES } from "@fairlead/base";
import { nodePortChoice, type Service, type ServicePortSpec } from "@fairlead/core";
import { findTarget, type PlannedNode, type Target } from "@fairlead/inspect";
import { CommandFailure } from "../../frame/errors.ts";
import { type Destination, destinationAt } from "./packet.ts";

/**
 * Where a packet to a service goes: its primary ClusterIP, or for a node port the node's own address, the
 * first one that the service chooses.
 *
 * @param text as the user wrote it, for messages
 * @returns undefined: there is no such service
 * @throws CommandFailure where it has several ports and none is named, or none of that name
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
  if (target.kind === "nodePort") return atNode(planned, service, target, text);
  if (found.length > 1) {
    const names = found.map((one) => one.service).join(", ");
    throw new CommandFailure(`--to=${text}: that is an address of ${names}: name one of them, or a port`);
  }
  const { port, protocol } = onlyPort(service, first.port, text);
  const [clusterIP = ""] = service.clusterIPs;
  const isOwn = target.kind === "host" && addressesOf(service).includes(target.address);
  return destinationAt(isOwn ? target.address : clusterIP, port, protocol);
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

import { IP_FAMILIES, isLoopback } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { type ModeFinding, sortedServices } from "./finding.ts";
import { nodePortServices } from "./node-ports.ts";
import { factsOfSide, hasTables, type ModeChange, type ModeSide } from "./sides.ts";

/** Node ports that the node itself reaches at 127.0.0.1 (::1) in one of the modes. */
export function localhostFindings({ before, after, seen }: ModeChange): readonly ModeFinding[] {
  const lost = IP_FAMILIES.filter((family) => onLoopback(family, before) && !onLoopback(family, after));
  const services = sortedServices(lost.flatMap((family) => nodePortServices(family, before)));
  if (services.length === 0) return [];
  const { localhostPackets } = seen;
  const found = `${services.length} ${services.length === 1 ? "service is" : "services are"} served at 127.0.0.1:NODEPORT for programs of the node, and then not; ${usedText(localhostPackets)}`;
  if (localhostPackets === 0) return [{ topic: TOPIC, state: "fits", found, services }];
  return [{ topic: TOPIC, state: "differs", found, ...(hasTables(after) && { advice: ADVICE }), services }];
}

const TOPIC = "node ports on localhost";

const ADVICE =
  "use the node's own address, or set featureGates: {KubeProxyNFTablesLocalhostNodePorts: true} and nodePortAddresses: " +
  "[primary, localhost], which relays TCP there";

function usedText(packets: number | undefined): string {
  if (packets === undefined) {
    return "whether one uses it is not known: kubeproxy_iptables_localhost_nodeports_accepted_packets_total counts it on each node";
  }
  return packets === 0
    ? "no packet was counted there since the rules exist"
    : `${packets} packets were counted there: it is used`;
}

/** Whether a program of the node that asks a loopback address of it for a node port is answered. */
function onLoopback(family: IPFamily, side: ModeSide): boolean {
  const { config, planned } = side;
  const said = planned.loopbackNodePorts(family);
  if (said !== undefined) return said === "relayed";
  // Only iptables mode, and only with IPv4, translates what is sent to loopback (route_localnet).
  if (family !== "IPv4" || factsOfSide(side).packetCounters.localhostAccepted === undefined) return false;
  const { nodePortAddresses } = planned.planner.plan(family).node;
  const isSelected = nodePortAddresses.kind === "all" || nodePortAddresses.addresses.some(isLoopback);
  return config.iptables.localhostNodePorts && isSelected;
}

/** The logical network: its switches and router in the northbound database, and a node's bridge. */

import type { IPFamily } from "@fairlead/core";
import { address, applyLines, applySettings, route, up } from "../../wire.ts";
import type { CniNode } from "../flavor.ts";
import {
  JOIN_CIDRS,
  JOIN_LENGTH,
  joinNode,
  joinRouter,
  mac,
  type NbCommand,
  type OvnClients,
  SOUTHBOUND_PORT,
  subnets,
  TUNNEL_LENGTH,
  tunnelAddress,
} from "./daemons.ts";

/** What geneve leaves of 1500 bytes is 1442; kube-ovn takes the round number. */
export const MTU = 1400;

/** OVN's bridge, where pods and the node itself have ports. */
export const INTEGRATION = "br-int";

/** @param central the node with OVN's databases */
export async function setUpSwitch(clients: OvnClients, node: CniNode, central: CniNode): Promise<void> {
  await clients.vswitch(node, "init");
  await clients.vswitch(node, ...words(settings(node, central)), ...words(bridges(node)), ...words(ownPort(node)));
}

/** Holds the second interface and the tunnel's address: the userspace datapath finds its way to other nodes by it. */
const TUNNELS = "br-phy";
const NODE_PORT = "ovn0";

/** The node's way to the pods, and the tunnels' way to other nodes. */
export async function addressSwitch({ index, runner }: CniNode, families: readonly IPFamily[]): Promise<void> {
  await applySettings(runner, {
    // The tunnel's address is its bridge's only: what the kernel's own interfaces answered for it would go past the
    // switch.
    "net/ipv4/conf/eth0/arp_ignore": "1",
    "net/ipv4/conf/eth1/arp_ignore": "1",
  });
  await applyLines(runner, [
    address(TUNNELS, `${tunnelAddress(index)}/${TUNNEL_LENGTH}`),
    up(TUNNELS),
    ...families.map((family) => address(NODE_PORT, `${joinNode(family, index)}/${JOIN_LENGTH[family]}`)),
    up(NODE_PORT),
    ...families.map((family) => route(subnets.podCIDRs[family], { via: joinRouter(family), dev: NODE_PORT })),
  ]);
}

const ROUTER = "fairlead-router";
const JOIN = "join";

/**
 * As kube-ovn lays it out: one router, a logical switch for each node's pods, and a switch `join` on which every node
 * has a port. What is for pods stays within, all else goes out through the pod's own node.
 */
export function topology(nodes: readonly CniNode[], families: readonly IPFamily[]): readonly NbCommand[] {
  return [
    ["lr-add", ROUTER],
    ["ls-add", JOIN],
    ...routerPort(
      JOIN,
      mac(2, 0),
      families.map((family) => `${joinRouter(family)}/${JOIN_LENGTH[family]}`),
    ),
    ...families.flatMap(policiesForAll),
    ...nodes.flatMap((node) => nodeCommands(node, families)),
  ];
}

export function switchOf(node: number): string {
  return `pods-${node}`;
}

function words(commands: readonly (readonly string[])[]): readonly string[] {
  return commands.flatMap((command) => ["--", ...command]);
}

function settings({ name, index }: CniNode, { addresses: { IPv4, IPv6 } }: CniNode) {
  const ids = {
    "system-id": name,
    hostname: name,
    "ovn-remote": `tcp:${IPv4 ?? `[${IPv6}]`}:${SOUTHBOUND_PORT}`,
    "ovn-encap-type": "geneve",
    "ovn-encap-ip": tunnelAddress(index),
    "ovn-bridge": INTEGRATION,
    "ovn-bridge-datapath-type": "netdev",
  };
  return [["set", "open", ".", ...Object.entries(ids).map(([key, value]) => `external_ids:${key}="${value}"`)]];
}

/** Of the userspace datapath both: the kernel's has to be loaded as a module. */
function bridges({ index }: CniNode) {
  return [
    ["add-br", INTEGRATION],
    ["set", "bridge", INTEGRATION, "datapath_type=netdev", "fail-mode=secure", "other-config:disable-in-band=true"],
    ["add-br", TUNNELS],
    [
      "set",
      "bridge",
      TUNNELS,
      "datapath_type=netdev",
      "fail-mode=standalone",
      `other-config:hwaddr="${mac(0, index)}"`,
    ],
    ["add-port", TUNNELS, "eth1"],
  ];
}

function ownPort({ index }: CniNode) {
  const fields = ["type=internal", `mac="${mac(1, index)}"`, `mtu_request=${MTU}`];
  return [
    ["add-port", INTEGRATION, NODE_PORT],
    ["set", "interface", NODE_PORT, ...fields, `external_ids:iface-id=${nodePort(index)}`],
  ];
}

const MATCHES: Readonly<Record<IPFamily, string>> = { IPv4: "ip4", IPv6: "ip6" };
const EVERYTHING: Readonly<Record<IPFamily, string>> = { IPv4: "0.0.0.0/0", IPv6: "::/0" };

function nodePort(node: number): string {
  return `node-port-${node}`;
}

function nodeCommands({ index, addresses }: CniNode, families: readonly IPFamily[]): readonly NbCommand[] {
  const joins = families.map((family) => joinNode(family, index));
  const gateways = families.map((family) => `${subnets.address(family, index, 1)}/${subnets.length[family]}`);
  return [
    ["ls-add", switchOf(index)],
    ...routerPort(switchOf(index), mac(2, index), gateways),
    ["lsp-add", JOIN, nodePort(index)],
    ["lsp-set-addresses", nodePort(index), [mac(1, index), ...joins].join(" ")],
    ...families.flatMap((family) => policiesOfNode(index, family, addresses[family])),
  ];
}

function routerPort(name: string, address: string, networks: readonly string[]): readonly NbCommand[] {
  const [atRouter, atSwitch] = [`router-${name}`, `${name}-router`];
  return [
    ["lrp-add", ROUTER, atRouter, address, ...networks],
    ["lsp-add", name, atSwitch],
    ["lsp-set-type", atSwitch, "router"],
    ["lsp-set-addresses", atSwitch, "router"],
    ["lsp-set-options", atSwitch, `router-port=${atRouter}`],
  ];
}

function policiesForAll(family: IPFamily): readonly NbCommand[] {
  const to = (cidr: string) => `${MATCHES[family]}.dst == ${cidr}`;
  return [
    // Without any route a packet never comes to the policies.
    ["lr-route-add", ROUTER, EVERYTHING[family], joinRouter(family)],
    ["lr-policy-add", ROUTER, "31000", to(subnets.podCIDRs[family]), "allow"],
    ["lr-policy-add", ROUTER, "31000", to(JOIN_CIDRS[family]), "allow"],
  ];
}

function policiesOfNode(index: number, family: IPFamily, address: string | undefined): readonly NbCommand[] {
  const join = joinNode(family, index);
  const ip = MATCHES[family];
  return [
    ["lr-policy-add", ROUTER, "30000", `${ip}.dst == ${address}`, "reroute", join],
    ["lr-policy-add", ROUTER, "29000", `${ip}.src == ${subnets.subnet(family, index)}`, "reroute", join],
  ];
}

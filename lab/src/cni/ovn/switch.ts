import type { IPFamily } from "@fairlead/core";
import { applyLines, applySettings } from "../../wire/apply.ts";
import { address, route, up } from "../../wire/ip-lines.ts";
import type { CniNode } from "../flavor.ts";
import { JOIN_LENGTH, joinNode, joinRouter, mac, subnets, TUNNEL_LENGTH, tunnelAddress } from "./addresses.ts";
import type { OvnClients } from "./clients.ts";
import { SOUTHBOUND_PORT } from "./daemons.ts";
import { nodePort } from "./topology.ts";

/** What geneve leaves of 1500 bytes is 1442; kube-ovn takes the round number. */
export const MTU = 1400;

/** OVN's bridge, where pods and the node itself have ports. */
export const INTEGRATION = "br-int";
/** Holds the second interface and the tunnel's address: the userspace datapath finds its way to other nodes by it. */
const TUNNELS = "br-phy";
const NODE_PORT = "ovn0";

/** @param central the node with OVN's databases */
export async function setUpSwitch(clients: OvnClients, node: CniNode, central: CniNode): Promise<void> {
  await clients.vswitch(node, "init");
  await clients.vswitch(node, ...words(settings(node, central)), ...words(bridges(node)), ...words(ownPort(node)));
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

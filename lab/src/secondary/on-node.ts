import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";

/** By which of CNI's plugins pods are attached, and the plugin's own settings. */
export const SECONDARY_PLUGINS = {
  macvlan: { type: "macvlan", master: "eth0", mode: "bridge" },
  bridge: { type: "bridge", bridge: "storage0", mtu: 1450 },
} as const;

export type SecondaryPlugin = keyof typeof SECONDARY_PLUGINS;

/** A node, as far as it takes part in the network. */
interface SecondaryNode extends Pick<Runner, "run"> {
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
}

/** The node's interface on the network, and the tunnel that is a port of its bridge. */
const [ON_NODE, TUNNEL] = ["storage0", "storage1"] as const;

const NODE_ADDRESS: Readonly<Record<IPFamily, (index: number) => string>> = {
  IPv4: (index) => `192.168.50.${200 + index}/24`,
  IPv6: (index) => `fd00:50::f${index.toString(16).padStart(3, "0")}/64`,
};

/**
 * Makes the node's interface on the network: another macvlan, since by the one below it no packet gets to the pods, or
 * the bridge of its pods, which a tunnel connects to those of the other nodes.
 *
 * @param index of the node among all, from 0
 */
export async function joinNode(
  plugin: SecondaryPlugin,
  nodes: readonly SecondaryNode[],
  index: number,
  families: readonly IPFamily[],
): Promise<void> {
  const node = nodes[index];
  if (node === undefined) throw new RangeError(`there is no node ${index}`);
  if (plugin === "macvlan") await add(node, ON_NODE, "link", "eth0", "type", "macvlan", "mode", "bridge");
  else await addBridge(node, nodes, families);
  for (const family of families) {
    await node.run(["ip", "address", "add", NODE_ADDRESS[family](index + 1), "dev", ON_NODE, "nodad"]);
  }
  await node.run(["ip", "link", "set", ON_NODE, "up"]);
}

export async function leaveNode(node: Pick<Runner, "run">, plugin: SecondaryPlugin): Promise<void> {
  if (plugin === "bridge") await node.run(["ip", "link", "delete", TUNNEL]);
  await node.run(["ip", "link", "delete", ON_NODE]);
}

async function addBridge(
  node: SecondaryNode,
  nodes: readonly SecondaryNode[],
  [family = "IPv4"]: readonly IPFamily[],
): Promise<void> {
  await add(node, ON_NODE, "mtu", "1450", "type", "bridge");
  const at = ({ addresses }: SecondaryNode) => addresses[family] ?? "";
  await add(node, TUNNEL, ..."mtu 1450 type vxlan id 50 dev eth0 dstport 4789 local".split(" "), at(node));
  await node.run(["ip", "link", "set", TUNNEL, "master", ON_NODE, "up"]);
  for (const other of nodes) {
    // Frames to addresses that it has not learned go to every other node.
    const all = ["bridge", "fdb", "append", "00:00:00:00:00:00", "dev", TUNNEL, "dst", at(other)] as const;
    if (other !== node) await node.run(all);
  }
}

async function add({ run }: SecondaryNode, name: string, ...more: readonly string[]): Promise<void> {
  await run(["ip", "link", "add", name, ...more]);
}

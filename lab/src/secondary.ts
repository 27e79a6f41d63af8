/** Second interfaces of pods, by CNI's plugins on the node. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import {
  DEFAULT_KUBERNETES,
  missingPrograms,
  type ProgramPaths,
  type ProgramSet,
  providePrograms,
} from "./control-plane/programs.ts";

/** A second network of nodes and pods, over what connects the nodes. */
export interface SecondaryNetwork {
  /** `namespace/name`, as its NetworkAttachmentDefinition would be called. */
  readonly name: string;
  readonly cidrs: readonly string[];
  /**
   * Gives a pod the interface net1, by one of CNI's plugins and host-local.
   *
   * @param node runs programs in the namespace of the pod's node
   * @param pid of the pod's namespace
   * @returns its addresses there
   */
  attach(node: Runner, pod: { readonly name: string; readonly pid: number }): Promise<readonly string[]>;
  /** What is kept outside of namespaces. */
  dispose(): Promise<void>;
}

const SECONDARY_CIDRS: Readonly<Record<IPFamily, string>> = {
  IPv4: "192.168.50.0/24",
  IPv6: "fd00:50::/64",
};

/** Pods have those below; one for each node is above. */
const RANGES: Readonly<Record<IPFamily, { readonly rangeStart: string; readonly rangeEnd: string }>> = {
  IPv4: { rangeStart: "192.168.50.10", rangeEnd: "192.168.50.199" },
  IPv6: { rangeStart: "fd00:50::10", rangeEnd: "fd00:50::fff" },
};

/** By which of CNI's plugins pods are attached, and the plugin's own settings. */
const SECONDARY_PLUGINS = {
  macvlan: { type: "macvlan", master: "eth0", mode: "bridge" },
  bridge: { type: "bridge", bridge: "storage0", mtu: 1450 },
} as const;

/** Of pods. */
const IN_POD = "net1";

export async function openSecondary(
  name: string,
  plugin: SecondaryPlugin,
  families: readonly IPFamily[],
): Promise<SecondaryNetwork> {
  const file = (await cniPlugins())[plugin];
  // All nodes are on this machine: one folder of leases gives each address once.
  const leases = await mkdtemp(join(tmpdir(), "fairlead-leases-"));
  const ranges = families.map((family) => [{ subnet: SECONDARY_CIDRS[family], ...RANGES[family] }]);
  const ipam = { type: "host-local", dataDir: leases, ranges };
  const config = { cniVersion: "1.0.0", name: "storage", ...SECONDARY_PLUGINS[plugin], ipam };
  return {
    name,
    cidrs: families.map((family) => SECONDARY_CIDRS[family]),
    async attach(node, { name: id, pid }) {
      const variables = [
        "CNI_COMMAND=ADD",
        `CNI_CONTAINERID=${id}`,
        `CNI_NETNS=/proc/${pid}/ns/net`,
        `CNI_IFNAME=${IN_POD}`,
        `CNI_PATH=${dirname(file)}`,
      ];
      const { stdout } = await node.run(["env", ...variables, file], { input: JSON.stringify(config) });
      const result: { readonly ips: readonly { readonly address: string }[] } = JSON.parse(stdout);
      return result.ips.map(({ address }) => address.replace(/\/.*/, ""));
    },
    dispose: () => rm(leases, { recursive: true, force: true }),
  };
}

/** The annotations of a pod as Multus writes them. */
export function networkStatus(
  { name }: Pick<SecondaryNetwork, "name">,
  first: readonly string[],
  ips: readonly string[],
): Readonly<Record<string, string>> {
  const statuses = [
    { name: "cluster", interface: "eth0", ips: first, default: true, dns: {} },
    { name, interface: IN_POD, ips, dns: {} },
  ];
  return { "k8s.v1.cni.cncf.io/network-status": JSON.stringify(statuses, undefined, 4) };
}

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

const MODULE = { path: "github.com/containernetworking/plugins", version: "v1.9.1" } as const;

type Plugin = "bridge" | "macvlan" | "host-local";

/** The reference plugins, as nodes have them in /opt/cni/bin. */
const plugins: ProgramSet<Plugin> = {
  programs: {
    bridge: { package: `${MODULE.path}/plugins/main/bridge`, module: MODULE },
    macvlan: { package: `${MODULE.path}/plugins/main/macvlan`, module: MODULE },
    "host-local": { package: `${MODULE.path}/plugins/ipam/host-local`, module: MODULE },
  },
  folder: () => `cni-plugins-${MODULE.version}`,
};

/** Why they are not to be had on this machine; undefined: they are, built if need be. */
export function missingPlugins(): Promise<string | undefined> {
  return missingPrograms(plugins, DEFAULT_KUBERNETES);
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

/** Finds them, building what is absent: a minute the first time, cached from then on. */
function cniPlugins(): Promise<ProgramPaths<Plugin>> {
  return providePrograms(plugins, DEFAULT_KUBERNETES, () => {});
}

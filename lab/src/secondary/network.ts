import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { cniPlugins } from "./plugins.ts";

/** A second network of nodes and pods: macvlan over what connects the nodes. */
export interface SecondaryNetwork {
  /** `namespace/name`, as its NetworkAttachmentDefinition would be called. */
  readonly name: string;
  readonly cidrs: readonly string[];
  /**
   * Gives a pod the interface net1, by the plugins macvlan and host-local.
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
const NODE_ADDRESS: Readonly<Record<IPFamily, (index: number) => string>> = {
  IPv4: (index) => `192.168.50.${200 + index}/24`,
  IPv6: (index) => `fd00:50::f${index.toString(16).padStart(3, "0")}/64`,
};

/** Of the node, and of its pods. */
const [ON_NODE, IN_POD] = ["storage0", "net1"] as const;

/** The node's interface on the network: by the one below, macvlan lets no packet to the pods. @param index from 1 */
export async function joinNode(node: Pick<Runner, "run">, index: number, families: readonly IPFamily[]): Promise<void> {
  await node.run(["ip", "link", "add", ON_NODE, "link", "eth0", "type", "macvlan", "mode", "bridge"]);
  for (const family of families) {
    await node.run(["ip", "address", "add", NODE_ADDRESS[family](index), "dev", ON_NODE, "nodad"]);
  }
  await node.run(["ip", "link", "set", ON_NODE, "up"]);
}

export async function leaveNode(node: Pick<Runner, "run">): Promise<void> {
  await node.run(["ip", "link", "delete", ON_NODE]);
}

export async function openSecondary(name: string, families: readonly IPFamily[]): Promise<SecondaryNetwork> {
  const { macvlan } = await cniPlugins();
  // All nodes are on this machine: one folder of leases gives each address once.
  const leases = await mkdtemp(join(tmpdir(), "fairlead-leases-"));
  const ranges = families.map((family) => [{ subnet: SECONDARY_CIDRS[family], ...RANGES[family] }]);
  const ipam = { type: "host-local", dataDir: leases, ranges };
  const config = { cniVersion: "1.0.0", name: "storage", type: "macvlan", master: "eth0", mode: "bridge", ipam };
  return {
    name,
    cidrs: families.map((family) => SECONDARY_CIDRS[family]),
    async attach(node, { name: id, pid }) {
      const variables = [
        "CNI_COMMAND=ADD",
        `CNI_CONTAINERID=${id}`,
        `CNI_NETNS=/proc/${pid}/ns/net`,
        `CNI_IFNAME=${IN_POD}`,
        `CNI_PATH=${dirname(macvlan)}`,
      ];
      const { stdout } = await node.run(["env", ...variables, macvlan], { input: JSON.stringify(config) });
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

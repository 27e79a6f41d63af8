import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { SECONDARY_PLUGINS, type SecondaryPlugin } from "./on-node.ts";
import { cniPlugins } from "./plugins.ts";

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

import type { IPFamily } from "@fairlead/core";
import { ANYWHERE, address, applyLines, applySettings, route, up, veth } from "../wire.ts";
import type { CniNode, NodeSubnets, PodAddresses, PodToAttach } from "./flavor.ts";

/** Answers between pods of one bridge must be seen by connection tracking, or they keep the endpoint's address. */
export const BRIDGED_IS_SEEN = {
  "net/bridge/bridge-nf-call-iptables": "1",
  "net/bridge/bridge-nf-call-ip6tables": "1",
} as const;

export interface BridgeFields {
  readonly bridge: string;
  /** Of the bridge, less the node's number: `0a:58:0a:8f:00` */
  readonly macPrefix: string;
  /** Of the nodes' ends of the pods' links; two letters. */
  readonly linkPrefix: string;
  readonly mtu: number;
  readonly families: readonly IPFamily[];
  readonly subnets: NodeSubnets;
}

/** A bridge on every node that is its pods' gateway, as the CNI plugin `bridge` makes it with `hairpinMode`. */
export interface BridgePlugin {
  setUp(node: CniNode): Promise<void>;
  attach(pod: PodToAttach): Promise<PodAddresses>;
  detach(pod: PodToAttach): Promise<void>;
}

export function bridgePlugin(fields: BridgeFields): BridgePlugin {
  return {
    setUp: (node) => setUp(node, fields),
    attach: (pod) => attach(pod, fields),
    detach: async ({ name, node }) => {
      await node.runner.run(["ip", "link", "delete", `${fields.linkPrefix}-${name}`]);
    },
  };
}

async function setUp({ index, runner }: CniNode, fields: BridgeFields): Promise<void> {
  const { bridge, macPrefix, mtu, families, subnets } = fields;
  await applySettings(runner, BRIDGED_IS_SEEN);
  await applyLines(runner, [
    // Without an address of its own it takes its ports' lowest, and with every new pod the others lose their gateway.
    `link add ${bridge} address ${macPrefix}:${index.toString(16).padStart(2, "0")} mtu ${mtu} type bridge`,
    up(bridge),
    ...families.map((family) => address(bridge, `${subnets.address(family, index, 1)}/${subnets.length[family]}`)),
  ]);
}

async function attach(pod: PodToAttach, fields: BridgeFields): Promise<PodAddresses> {
  const { name, node, index, namespace, runner } = pod;
  const { bridge, linkPrefix, mtu, families, subnets } = fields;
  const host = `${linkPrefix}-${name}`;
  await applyLines(node.runner, [
    veth(host, "eth0", namespace.pid),
    `link set ${host} mtu ${mtu} master ${bridge}`,
    // A pod that calls its own service gets the packet back through the port that it came by.
    `link set ${host} type bridge_slave hairpin on`,
    up(host),
  ]);
  const own = families.map((family) => [family, subnets.pod(family, node.index, index)] as const);
  await applyLines(runner, [
    `link set eth0 mtu ${mtu}`,
    up("eth0"),
    ...own.flatMap(([family, ip]) => [
      address("eth0", `${ip}/${subnets.length[family]}`),
      route(ANYWHERE[family], { via: subnets.address(family, node.index, 1) }),
    ]),
  ]);
  return Object.fromEntries(own);
}

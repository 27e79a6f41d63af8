import type { IPFamily } from "@fairlead/core";
import { applyLines, applySettings } from "../../src/lab/apply.ts";
import { address, anywhere, type IpLines, route, up, veth } from "../../src/lab/ip-lines.ts";
import type { CniFlavour, CniGround, CniNode, PodAddresses, PodNetwork, PodToAttach } from "../flavour.ts";
import { masqueradeOutgoing } from "../outgoing.ts";

/** A bridge on every node, routes between the nodes: the CNI plugins bridge and host-local. */
export const flavour: CniFlavour = {
  name: "bridge",
  programs: [{ program: "bridge", debian: "iproute2" }],
  podCIDRs: { IPv4: "10.143.0.0/16", IPv6: "fd00:143::/48" },
  ownLoadBalancer: false,
  mtu: 1500,
  install,
};

const BRIDGE = "cni-bridge";

/** The addresses of a node's part: 0 is the part itself, 1 the bridge, pods come from 10 on. */
const inPart: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
  IPv4: (node, host) => `10.143.${node}.${host}`,
  IPv6: (node, host) => `fd00:143::${node}:${host === 0 ? 0 : host.toString(16)}`,
};
const partPrefix: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 112 };
const FIRST_POD = 10;

async function install({ nodes, families }: CniGround): Promise<PodNetwork> {
  await Promise.all(nodes.map((node) => setUpNode(node, nodes, families)));
  return {
    attach: (pod) => attach(pod, families),
    detach: async ({ name, node }) => {
      await node.runner.run(["ip", "link", "delete", hostSide(name)]);
    },
    // Routes are there at once.
    ready: async () => {},
    state: async () => ({}),
    dispose: async () => {},
  };
}

async function setUpNode(node: CniNode, nodes: readonly CniNode[], families: readonly IPFamily[]): Promise<void> {
  await applySettings(node.runner, {
    // Answers between pods of one bridge must be seen by connection tracking, or they keep the endpoint's address.
    "net/bridge/bridge-nf-call-iptables": "1",
    "net/bridge/bridge-nf-call-ip6tables": "1",
  });
  await applyLines(node.runner, [
    // Without an address of its own it takes its ports' lowest, and with every new pod the others lose their gateway.
    `link add ${BRIDGE} address 0a:58:0a:8f:00:${node.index.toString(16).padStart(2, "0")} type bridge`,
    up(BRIDGE),
    ...families.flatMap((family) => [
      address(BRIDGE, `${inPart[family](node.index, 1)}/${partPrefix[family]}`),
      ...nodes.filter((other) => other !== node).flatMap((other) => routeTo(other, family)),
    ]),
  ]);
  for (const family of families) await masqueradeOutgoing(node.runner, family, flavour);
}

function routeTo({ index, addresses }: CniNode, family: IPFamily): IpLines {
  const via = addresses[family];
  return via === undefined ? [] : [route(`${inPart[family](index, 0)}/${partPrefix[family]}`, { via })];
}

async function attach({ name, node, index, namespace, runner }: PodToAttach, families: readonly IPFamily[]) {
  await applyLines(node.runner, [
    veth(hostSide(name), "eth0", namespace.pid),
    `link set ${hostSide(name)} master ${BRIDGE}`,
    // A pod that calls its own service gets the packet back through the port that it came by.
    `link set ${hostSide(name)} type bridge_slave hairpin on`,
    up(hostSide(name)),
  ]);
  const own = families.map((family) => [family, inPart[family](node.index, FIRST_POD + index)] as const);
  await applyLines(runner, [
    up("eth0"),
    ...own.flatMap(([family, pod]) => [
      address("eth0", `${pod}/${partPrefix[family]}`),
      route(anywhere[family], { via: inPart[family](node.index, 1) }),
    ]),
  ]);
  return Object.fromEntries(own) satisfies PodAddresses;
}

function hostSide(pod: string): string {
  return `br-${pod}`;
}

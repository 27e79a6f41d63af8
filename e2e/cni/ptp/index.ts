import type { IPFamily } from "@fairlead/core";
import { applyLines } from "../../src/lab/apply.ts";
import { address, anywhere, type IpLines, route, up, veth } from "../../src/lab/ip-lines.ts";
import type { CniFlavour, CniGround, CniNode, PodAddresses, PodNetwork, PodToAttach } from "../flavour.ts";
import { masqueradeOutgoing } from "../outgoing.ts";

/** A routed link for each pod, routes between the nodes: the CNI plugins ptp and host-local. */
export const flavour: CniFlavour = {
  name: "ptp",
  programs: [],
  podCIDRs: { IPv4: "10.142.0.0/16", IPv6: "fd00:142::/48" },
  ownLoadBalancer: false,
  mtu: 1500,
  install,
};

/** The same on every link. */
const gateway: Readonly<Record<IPFamily, string>> = { IPv4: "169.254.142.1", IPv6: "fe80::142:1" };
const inPart: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
  IPv4: (node, host) => `10.142.${node}.${host}`,
  IPv6: (node, host) => `fd00:142::${node}:${host.toString(16)}`,
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
  const others = nodes.filter((other) => other !== node);
  await applyLines(
    node.runner,
    families.flatMap((family) => others.flatMap((other) => routeTo(other, family))),
  );
  for (const family of families) await masqueradeOutgoing(node.runner, family, flavour);
}

function routeTo({ index, addresses }: CniNode, family: IPFamily): IpLines {
  const via = addresses[family];
  return via === undefined ? [] : [route(`${inPart[family](index, 0)}/${partPrefix[family]}`, { via })];
}

async function attach({ name, node, index, namespace, runner }: PodToAttach, families: readonly IPFamily[]) {
  const own = families.map((family) => [family, inPart[family](node.index, FIRST_POD + index)] as const);
  await applyLines(node.runner, [
    veth(hostSide(name), "eth0", namespace.pid),
    up(hostSide(name)),
    ...own.flatMap(([family, pod]) => nodeSide(hostSide(name), family, pod, node.addresses[family])),
  ]);
  await applyLines(runner, [
    up("eth0"),
    ...own.flatMap(([family, pod]) => [
      address("eth0", `${pod}/${family === "IPv4" ? 32 : 128}`),
      route(anywhere[family], { via: gateway[family], dev: "eth0", onlink: true }),
    ]),
  ]);
  return Object.fromEntries(own) satisfies PodAddresses;
}

function nodeSide(link: string, family: IPFamily, pod: string, src: string | undefined): IpLines {
  return [
    // Of link scope, so that nothing is masqueraded with it.
    family === "IPv4" ? address(link, `${gateway.IPv4}/32`, "link") : address(link, `${gateway.IPv6}/64`),
    route(pod, { dev: link, ...(src !== undefined && { src }) }),
  ];
}

function hostSide(pod: string): string {
  return `ptp-${pod}`;
}

import type { IPFamily } from "@fairlead/core";
import { applyLines, applySettings } from "../../src/lab/apply.ts";
import { address, anywhere, route, up, veth } from "../../src/lab/ip-lines.ts";
import type { CniNode, PodAddresses, PodToAttach } from "../flavour.ts";
import { FIRST_POD, inSubnet, prefixLength } from "./addresses.ts";

const BRIDGE = "cni0";

export interface PodLink {
  readonly families: readonly IPFamily[];
  readonly mtu: number;
}

/** The bridge that the CNI plugin makes at flannel's behest. */
export async function setUpBridge({ index, runner }: CniNode, { families, mtu }: PodLink): Promise<void> {
  await applySettings(runner, {
    // Answers between pods of one bridge must be seen by connection tracking, or they keep the endpoint's address.
    "net/bridge/bridge-nf-call-iptables": "1",
    "net/bridge/bridge-nf-call-ip6tables": "1",
  });
  await applyLines(runner, [
    // Without an address of its own it takes its ports' lowest, and with every new pod the others lose their gateway.
    `link add ${BRIDGE} address 0a:58:0a:2a:01:${index.toString(16).padStart(2, "0")} mtu ${mtu} type bridge`,
    up(BRIDGE),
    ...families.map((family) => address(BRIDGE, `${inSubnet[family](index, 1)}/${prefixLength[family]}`)),
  ]);
}

export async function attach(pod: PodToAttach, { families, mtu }: PodLink): Promise<PodAddresses> {
  const { name, node, index, namespace, runner } = pod;
  const host = hostSide(name);
  await applyLines(node.runner, [
    veth(host, "eth0", namespace.pid),
    // A pod that calls its own service gets the packet back through the port that it came by.
    `link set ${host} mtu ${mtu} master ${BRIDGE}`,
    `link set ${host} type bridge_slave hairpin on`,
    up(host),
  ]);
  const own = families.map((family) => [family, inSubnet[family](node.index, FIRST_POD + index)] as const);
  await applyLines(runner, [
    `link set eth0 mtu ${mtu}`,
    up("eth0"),
    ...own.flatMap(([family, ip]) => [
      address("eth0", `${ip}/${prefixLength[family]}`),
      route(anywhere[family], { via: inSubnet[family](node.index, 1) }),
    ]),
  ]);
  return Object.fromEntries(own);
}

export async function detach({ name, node }: PodToAttach): Promise<void> {
  await node.runner.run(["ip", "link", "delete", hostSide(name)]);
}

function hostSide(pod: string): string {
  return `fl-${pod}`;
}

import type { IPFamily } from "@fairlead/core";
import { PLAIN_TOOL } from "../../support/machine.ts";
import { address, applyLines, type IpLines, route, up } from "../../wire.ts";
import { bridgePlugin } from "../bridge-plugin.ts";
import {
  type CniFlavor,
  type CniGround,
  type CniNode,
  MULTICAST,
  nodeSubnets,
  type PodNetwork,
  routeToOthers,
} from "../flavor.ts";

/** The network in flannel's net-conf.json, and the subnets that nodes lease of it; 0 is a node's end of the tunnel. */
export const subnets = nodeSubnets("10.42", "fd00:42::");

/** What is left of a packet of 1500 bytes: outer headers of Ethernet, IP, UDP and VXLAN. */
export const TUNNEL_MTU: Readonly<Record<IPFamily, number>> = { IPv4: 1450, IPv6: 1430 };

/** flanneld's: a tunnel for each family, in packets of that family. */
const DEVICES: Readonly<Record<IPFamily, string>> = { IPv4: "flannel.1", IPv6: "flannel-v6.1" };
const HOST_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };
const VNI = 1;
/** The kernel's old number and flanneld's default, not IANA's 4789. */
const PORT = 8472;

/** How packets come to another node. */
interface Backend {
  readonly mtu: (families: readonly IPFamily[]) => number;
  readonly setUp: (node: CniNode, others: readonly CniNode[], family: IPFamily) => Promise<void>;
  readonly state: (node: CniNode) => Promise<readonly (readonly [string, string])[]>;
}

const vxlan: Backend = {
  // The families share one bridge.
  mtu: (families) => Math.min(...families.map((family) => TUNNEL_MTU[family])),
  setUp: setUpVxlan,
  state: vxlanState,
};

/** A bridge on every node and a tunnel between the nodes: flannel's vxlan backend. */
export const flavor: CniFlavor = {
  name: "flannel",
  programs: [{ program: "bridge", debian: "iproute2" }],
  podCIDRs: subnets.podCIDRs,
  ownLoadBalancer: false,
  mtu: TUNNEL_MTU.IPv6,
  install: (ground) => install(ground, vxlan),
};

const hostGateway: Backend = {
  mtu: () => 1500,
  setUp: (node, others, family) => routeToOthers(node, others, family, subnets),
  state: async () => [],
};

/** `flannel:host-gw`: a bridge on every node and routes between the nodes. */
export const variants: Readonly<Record<string, CniFlavor>> = {
  "host-gw": { ...flavor, mtu: 1500, install: (ground) => install(ground, hostGateway) },
};

/**
 * flanneld's rules with `--ip-masq`: what leaves the pod network gets the node's address, what comes from elsewhere to
 * a pod of another node too, so that the answer comes back this way. What the proxy has marked is the proxy's.
 */
export async function masquerade({ index, runner }: CniNode, family: IPFamily): Promise<void> {
  const [all, own] = [subnets.podCIDRs[family], subnets.subnet(family, index)];
  const rules = [
    "-m mark --mark 0x4000/0x4000 -j RETURN",
    `-s ${own} -d ${all} -j RETURN`,
    `-s ${all} -d ${own} -j RETURN`,
    `! -s ${all} -d ${own} -j RETURN`,
    `-s ${all} ! -d ${MULTICAST[family]} -j MASQUERADE --random-fully`,
    `! -s ${all} -d ${all} -j MASQUERADE --random-fully`,
  ];
  await runner.run([`${PLAIN_TOOL[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      ":FLANNEL-POSTRTG - [0:0]",
      ...rules.map((rule) => `-A FLANNEL-POSTRTG ${rule}`),
      "-A POSTROUTING -j FLANNEL-POSTRTG",
      "COMMIT\n",
    ].join("\n"),
  });
}

/**
 * A node's end of the tunnel without learning: it is given, for every other node, the route to its subnet, the MAC of
 * its end (ARP or ND) and the node behind that MAC (FDB).
 */
export async function setUpVxlan(node: CniNode, others: readonly CniNode[], family: IPFamily): Promise<void> {
  await applyLines(node.runner, [
    ...device(node, family),
    ...others.flatMap(({ index }) => [
      `neighbor add ${subnets.address(family, index, 0)} lladdr ${mac(index, family)} dev ${DEVICES[family]} nud permanent`,
      route(subnets.subnet(family, index), {
        via: subnets.address(family, index, 0),
        dev: DEVICES[family],
        onlink: true,
      }),
    ]),
  ]);
  const entries = others.map(
    ({ index, addresses }) =>
      `fdb append ${mac(index, family)} dev ${DEVICES[family]} dst ${addresses[family]} self permanent\n`,
  );
  await node.runner.run(["bridge", "-batch", "-"], { input: entries });
}

/** For the artifacts. */
export async function vxlanState({ name, runner }: CniNode): Promise<readonly (readonly [string, string])[]> {
  const [links, fdb] = await Promise.all([
    runner.run(["ip", "-d", "link", "show", "type", "vxlan"]),
    runner.run(["bridge", "fdb", "show"]),
  ]);
  return [
    [`${name}-vxlan.txt`, links.stdout],
    [`${name}-fdb.txt`, fdb.stdout],
  ];
}

async function install({ nodes, families }: CniGround, backend: Backend): Promise<PodNetwork> {
  const fields = { bridge: "cni0", macPrefix: "0a:58:0a:2a:01", linkPrefix: "fl", mtu: backend.mtu(families) };
  const { setUp, attach, detach } = bridgePlugin({ ...fields, families, subnets });
  const setUpNode = async (node: CniNode) => {
    const others = nodes.filter((other) => other !== node);
    await setUp(node);
    for (const family of families) {
      await backend.setUp(node, others, family);
      await masquerade(node, family);
    }
  };
  await Promise.all(nodes.map(setUpNode));
  return {
    attach,
    detach,
    // The kernel has all of it at once.
    ready: async () => {},
    state: async () => Object.fromEntries((await Promise.all(nodes.map(backend.state))).flat()),
    dispose: async () => {},
  };
}

function device({ index, addresses }: CniNode, family: IPFamily): IpLines {
  const name = DEVICES[family];
  const tunnel = `type vxlan id ${VNI} local ${addresses[family]} dev eth0 dstport ${PORT} nolearning`;
  return [
    `link add ${name} address ${mac(index, family)} mtu ${TUNNEL_MTU[family]} ${tunnel}`,
    address(name, `${subnets.address(family, index, 0)}/${HOST_LENGTH[family]}`),
    up(name),
  ];
}

/** flanneld announces what the kernel chose; here all nodes know them beforehand. */
function mac(node: number, family: IPFamily): string {
  return `0a:58:0a:2a:0${family === "IPv4" ? 4 : 6}:${node.toString(16).padStart(2, "0")}`;
}

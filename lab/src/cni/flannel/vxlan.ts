import type { IPFamily } from "@fairlead/core";
import { applyLines } from "../../wire/apply.ts";
import { address, type IpLines, route, up } from "../../wire/ip-lines.ts";
import type { CniNode } from "../flavor.ts";
import { subnets } from "./addresses.ts";

/** flanneld's: a tunnel for each family, in packets of that family. */
const DEVICES: Readonly<Record<IPFamily, string>> = { IPv4: "flannel.1", IPv6: "flannel-v6.1" };
const HOST_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };
const VNI = 1;
/** The kernel's old number and flanneld's default, not IANA's 4789. */
const PORT = 8472;

/** What is left of a packet of 1500 bytes: outer headers of Ethernet, IP, UDP and VXLAN. */
export const TUNNEL_MTU: Readonly<Record<IPFamily, number>> = { IPv4: 1450, IPv6: 1430 };

/**
 * A node's end of the tunnel without learning: of every other node it is told the route to its subnet, the MAC of its
 * end (ARP or ND) and the node behind that MAC (FDB).
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

function device({ index, addresses }: CniNode, family: IPFamily): IpLines {
  const name = DEVICES[family];
  const tunnel = `type vxlan id ${VNI} local ${addresses[family]} dev eth0 dstport ${PORT} nolearning`;
  return [
    `link add ${name} address ${mac(index, family)} mtu ${TUNNEL_MTU[family]} ${tunnel}`,
    address(name, `${subnets.address(family, index, 0)}/${HOST_LENGTH[family]}`),
    up(name),
  ];
}

/** flanneld announces what the kernel chose; here everybody knows them beforehand. */
function mac(node: number, family: IPFamily): string {
  return `0a:58:0a:2a:0${family === "IPv4" ? 4 : 6}:${node.toString(16).padStart(2, "0")}`;
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

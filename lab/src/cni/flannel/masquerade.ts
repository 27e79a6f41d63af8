import type { IPFamily } from "@fairlead/core";
import type { CniNode } from "../flavor.ts";
import { subnets } from "./addresses.ts";

const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };
const MULTICAST: Readonly<Record<IPFamily, string>> = { IPv4: "224.0.0.0/4", IPv6: "ff00::/8" };

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
  await runner.run([`${TOOLS[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      ":FLANNEL-POSTRTG - [0:0]",
      ...rules.map((rule) => `-A FLANNEL-POSTRTG ${rule}`),
      "-A POSTROUTING -j FLANNEL-POSTRTG",
      "COMMIT\n",
    ].join("\n"),
  });
}

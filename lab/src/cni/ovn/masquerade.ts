import type { IPFamily } from "@fairlead/core";
import type { CniNode } from "../flavor.ts";
import { subnets } from "./addresses.ts";

const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };

/**
 * What pods send to others than pods gets the node's address: `natOutgoing: true` of a Subnet. Without this rule, of
 * table nat, they keep their own.
 */
export const NAT_OUTGOING = ["CNI-OVN", "-j", "MASQUERADE"] as const;

/**
 * What kube-ovn's daemon writes on a node for its pods (pkg/daemon/gateway_linux.go, setIptables), where it comes
 * before the proxy. What the node sends on from pod to pod, which is what a service proxied by the node makes of it,
 * gets the node's address: the answer would go straight through OVN, past the node that has to translate it back.
 */
export async function masquerade({ runner }: CniNode, family: IPFamily): Promise<void> {
  const pods = subnets.podCIDRs[family];
  const [chain] = NAT_OUTGOING;
  await runner.run([`${TOOLS[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      `:${chain} - [0:0]`,
      `-A ${chain} -d ${pods} -j MASQUERADE`,
      // Of a connection that began past this node.
      `-A ${chain} -p tcp ! --syn -m conntrack --ctstate NEW -j RETURN`,
      `-A ${NAT_OUTGOING.join(" ")}`,
      `-A POSTROUTING -s ${pods} -j ${chain}`,
      "COMMIT",
      "*filter",
      `-A FORWARD -s ${pods} -j ACCEPT`,
      `-A FORWARD -d ${pods} -j ACCEPT`,
      "COMMIT\n",
    ].join("\n"),
  });
}

import type { IPFamily } from "@fairlead/core";
import type { CniNode } from "../flavour.ts";
import { subnets } from "./addresses.ts";

const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };

/**
 * What pods send through their node gets the node's address. Also to other pods, which is what a service proxied by the
 * node makes of it: the answer would go straight through OVN, past the node that has to translate it back.
 */
export async function masquerade({ runner }: CniNode, family: IPFamily): Promise<void> {
  await runner.run([`${TOOLS[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      ":CNI-OVN - [0:0]",
      "-A CNI-OVN -j MASQUERADE",
      `-A POSTROUTING -s ${subnets.podCIDRs[family]} -j CNI-OVN`,
      "COMMIT\n",
    ].join("\n"),
  });
}

import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import type { CniFlavor } from "./flavor.ts";

const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };
const MULTICAST: Readonly<Record<IPFamily, string>> = { IPv4: "224.0.0.0/4", IPv6: "ff00::/8" };

/**
 * What most CNI plugins do on a node: packets of pods to anywhere else get the node's address. A chain of the flavor's
 * own, alongside the proxy's.
 */
export async function masqueradeOutgoing(
  runner: Runner,
  family: IPFamily,
  { name, podCIDRs }: Pick<CniFlavor, "name" | "podCIDRs">,
): Promise<void> {
  const pods = podCIDRs[family];
  if (pods === undefined) return;
  const chain = `CNI-${name.toUpperCase()}`;
  await runner.run([`${TOOLS[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      `:${chain} - [0:0]`,
      `-A ${chain} -d ${pods} -j RETURN`,
      `-A ${chain} ! -d ${MULTICAST[family]} -j MASQUERADE`,
      `-A POSTROUTING -s ${pods} -j ${chain}`,
      "COMMIT\n",
    ].join("\n"),
  });
}

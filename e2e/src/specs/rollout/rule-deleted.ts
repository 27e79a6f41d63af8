import { nftTable } from "../../faults/nftables.ts";
import type { ClusterNode } from "../../provider/cluster.ts";
import type { Scene } from "../scene.ts";
import type { ServiceHandle } from "../service.ts";

/** The first rule of the service's own chain that leads to an endpoint; it is no error if there is none any more. */
const OF_IPTABLES = `
  rule=$("$1-save" -t nat | grep -m 1 -- "^-A KUBE-SVC-.*\\"$2 -> ") || exit 0
  printf '*nat\\n-D%s\\nCOMMIT\\n' "\${rule#-A}" | "$1-restore" --noflush`;

/** Somebody deletes by hand what leads to a service on a node. Agents do not look at it before their next full sync. */
export async function ruleDeleted(
  { cluster, family, namespace }: Scene,
  node: ClusterNode,
  { name, clusterIP }: Pick<ServiceHandle, "name" | "clusterIP">,
): Promise<void> {
  if (cluster.mode === "nftables") {
    await node.run(["nft", `delete element ${nftTable(family)} service-ips { ${clusterIP} . tcp . 80 }`]);
  } else {
    const program = family === "IPv4" ? "iptables" : "ip6tables";
    await node.run(["sh", "-c", OF_IPTABLES, "sh", program, `${namespace}/${name}`]);
  }
}

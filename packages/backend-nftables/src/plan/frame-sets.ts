import { addressHex, type NftSet, type SetElement } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { EXCLUDED, FOREIGN, tellsClients } from "./excluded-clients.ts";
import { fastPathSets } from "./fast-path.ts";
import { firewallMap } from "./firewall-hooks.ts";
import { addressType, type EmptySet, frontendKey, nodePortKeyTypes } from "./key-types.ts";
import { LOOPBACK_REFUSALS } from "./names.ts";

/** kube-proxy's sets and maps, without their elements. */
export function frameSets(context: PlanContext): readonly EmptySet[] {
  const { family, nodePortAddresses, foreignClusterIPs, refusedOnLoopback } = context;
  const address = addressType(family);
  const frontend = frontendKey(family);
  const nodePort = nodePortKeyTypes;
  const set = (name: string, key: NftSet["key"], comment: string): EmptySet => ({ name, key, flags: [], comment });
  const vmap = (name: string, key: NftSet["key"], comment: string): EmptySet => ({
    ...set(name, key, comment),
    data: "verdict",
  });
  return [
    set("hairpin-connections", [address, ...frontend], "service hairpin connections"),
    set("cluster-ips", [address], "Active ClusterIPs"),
    ...(nodePortAddresses === "all" ? [] : [set("nodeport-ips", [address], "IPs that accept NodePort traffic")]),
    vmap("no-endpoint-services", frontend, "vmap to drop or reject packets to services with no endpoints"),
    vmap("no-endpoint-nodeports", nodePort, "vmap to drop or reject packets to service nodeports with no endpoints"),
    ...(context.fastPath ? [] : [firewallMap(context)]),
    vmap("service-ips", frontend, "ClusterIP, ExternalIP and LoadBalancer IP traffic"),
    vmap("service-nodeports", nodePort, "NodePort traffic"),
    ...(refusedOnLoopback.length === 0
      ? []
      : [vmap(LOOPBACK_REFUSALS, nodePort, "localhost NodePorts rejected by kube-proxy")]),
    ...(foreignClusterIPs.length === 0 ? [] : [set(FOREIGN, [address], "ClusterIPs that another network serves")]),
    ...(tellsClients(context)
      ? [{ ...set(EXCLUDED, [address], "clients that another network serves"), flags: ["interval"] as const }]
      : []),
    ...fastPathSets(context),
  ];
}

/** What the other sets have that does not come from groups. */
export function frameElements(context: PlanContext): ReadonlyMap<string, readonly SetElement[]> {
  const { nodePortAddresses, foreignClusterIPs } = context;
  const addresses = (list: readonly string[]) => list.map((address) => ({ key: addressHex(address) }));
  return new Map([
    ["nodeport-ips", nodePortAddresses === "all" ? [] : addresses(nodePortAddresses)],
    [FOREIGN, addresses(foreignClusterIPs)],
  ]);
}

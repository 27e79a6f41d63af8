/** What this mode, or kube-proxy's, has left in HCN. */

import { IP_FAMILIES } from "@fairlead/base";
import { Endpoints } from "./endpoints.ts";
import { leadsHere } from "./full-sync.ts";
import type { HcnPort } from "./port.ts";

/**
 * Removes the load balancers of one port that lead to the network, and the endpoints elsewhere that were made for them.
 * What leads to other networks stays. kube-proxy removes every load balancer of the node when it starts.
 */
export async function removeWindowsMode(port: HcnPort, networkName: string): Promise<void> {
  const network = await port.network(networkName);
  if (network === undefined) return;
  const endpoints = new Endpoints();
  await endpoints.refresh(port, network.ID);
  for (const id of await port.loadBalancerIds()) {
    const balancer = await port.loadBalancer(id);
    const { PortMappings = [], HostComputeEndpoints = [] } = balancer ?? {};
    if (balancer === undefined || PortMappings.length !== 1 || HostComputeEndpoints.length === 0) continue;
    if (await leadsHere(port, balancer, { endpoints, network: network.ID })) await port.deleteLoadBalancer(id);
  }
  const made = IP_FAMILIES.flatMap((family) => [...endpoints.made({ overlay: undefined, family })]);
  for (const { id } of made) await port.deleteEndpoint(id);
}

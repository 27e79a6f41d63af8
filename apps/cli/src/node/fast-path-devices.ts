import { type ChosenDevices, chooseDevices } from "@fairlead/backend-nftables";
import { type AgentConfig, fastPathNetworks, whyNotAuto } from "@fairlead/config";
import type { NodeState, StateRoute } from "@fairlead/inspect";

/**
 * The devices that the agent of a node has on the fast path; undefined: there are none, they cannot be listed, or the
 * configuration does not say which (`whyNotAuto`).
 */
export function fastPathDevices(
  config: Pick<AgentConfig, "nftables" | "clusterCIDRs" | "multiCNI">,
  { devices, routes, settings = {} }: NodeState,
): ChosenDevices | undefined {
  const { fastPath } = config.nftables;
  if (fastPath === undefined || whyNotAuto(config) !== undefined) return undefined;
  if (devices === undefined || routes === undefined) return undefined;
  const byDevice = cidrsByDevice(routes);
  const listed = devices.map((device) => ({ ...device, routes: byDevice.get(device.name) ?? [] }));
  const bridgeFilter = ["iptables", "ip6tables"].some(
    (tool) => (settings[`net/bridge/bridge-nf-call-${tool}`] ?? 0) !== 0,
  );
  return chooseDevices(fastPath.devices, listed, { bridgeFilter, ...fastPathNetworks(config) });
}

/** A route by each of its next hops; one of another type leads nowhere. */
function cidrsByDevice(routes: readonly StateRoute[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const { cidr, devices } of routes.filter(({ type }) => type === undefined)) {
    for (const device of devices) found.set(device, [...(found.get(device) ?? []), cidr]);
  }
  return found;
}

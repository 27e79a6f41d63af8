import type { ClusterView, Service, ServiceKey } from "@fairlead/core";

/**
 * The services that a text finds: by a part of their name, by an address or the beginning of one, theirs or one of
 * their endpoints', or by a port or node port.
 *
 * @returns in the byte order of their names
 */
export function searchServices(state: ClusterView, text: string): readonly ServiceKey[] {
  const wanted = text.trim().toLowerCase();
  const found: ServiceKey[] = [];
  for (const key of state.keys()) {
    const service = state.service(key);
    if (service !== undefined && (wanted === "" || matches(state, key, service, wanted))) found.push(key);
  }
  return found.sort();
}

function matches(state: ClusterView, key: ServiceKey, service: Service, wanted: string): boolean {
  if (key.includes(wanted)) return true;
  if (!/^[\d.:a-f[\]/]+$/.test(wanted)) return false;
  const { clusterIPs, externalIPs, loadBalancerIPs, ports } = service;
  const [address = "", port] = socketOf(wanted);
  const begins = (one: string) => one.startsWith(address);
  const hasAddress =
    [...clusterIPs, ...externalIPs, ...loadBalancerIPs].some(begins) ||
    state.slices(key).some(({ endpoints }) => endpoints.some((one) => begins(one.address)));
  if (hasAddress) return port === undefined || ports.some((one) => String(one.port) === port);
  return ports.some((one) => String(one.port) === wanted || String(one.nodePort) === wanted);
}

/** `10.96.0.10:80` and `[fd00::1]:80` have a port; `fd00::1` has none. */
function socketOf(text: string): readonly [address: string, port?: string] {
  const [, six, four, port] = /^(?:\[([^\]]*)\]|([\d.]+))(?::(\d+))?$/.exec(text) ?? [];
  const address = six ?? four ?? text;
  return port === undefined ? [address] : [address, port];
}

import type { ClusterView, Service, ServiceKey } from "@fairlead/core";
import type { Target } from "./explain/target.ts";

/**
 * The services that decide about a target: the one that it names, or those that have its address or node port, and all
 * that share an address or a node port with one of them, since only one can have it. No other matters.
 */
export function relatedServices(state: ClusterView, target: Target): ReadonlySet<ServiceKey> {
  const holders = holdersIn(state);
  const queue = new Set(target.kind === "service" ? [target.service] : namesOf(target).flatMap(holders));
  // What is added on the way is gone through as well.
  for (const key of queue) {
    const service = state.service(key);
    if (service === undefined) continue;
    for (const name of claimsOf(service)) for (const other of holders(name)) queue.add(other);
  }
  return queue;
}

function namesOf({ address, port }: Extract<Target, { readonly kind: "address" }>): readonly string[] {
  return [address, nodePortName(port)];
}

/** Everything of a service that another one could have as well. */
function claimsOf({ clusterIPs, externalIPs, loadBalancerIPs, ports }: Service): readonly string[] {
  const nodePorts = ports.flatMap(({ nodePort }) => (nodePort === undefined ? [] : [nodePortName(nodePort)]));
  return [...clusterIPs, ...externalIPs, ...loadBalancerIPs, ...nodePorts];
}

function nodePortName(port: number): string {
  return `node port ${port}`;
}

function holdersIn(state: ClusterView): (name: string) => readonly ServiceKey[] {
  const holders = new Map<string, ServiceKey[]>();
  for (const key of state.keys()) {
    const service = state.service(key);
    for (const name of service === undefined ? [] : claimsOf(service)) {
      const known = holders.get(name);
      if (known === undefined) holders.set(name, [key]);
      else known.push(key);
    }
  }
  return (name) => holders.get(name) ?? [];
}

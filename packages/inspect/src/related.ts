import type { ClusterView, ServiceKey } from "@fairlead/core";
import { claimsOf, claimsOn, claimText } from "./claims.ts";
import type { Target } from "./explain/target.ts";

/**
 * The services that decide about a target: the one that it names, or those that have its address or node port, and all
 * that share an address or a node port with one of them, since only one can have it. No other matters. An address that
 * no service claims may be a pod's of any service: then all do.
 */
export function relatedServices(state: ClusterView, target: Target): ReadonlySet<ServiceKey> {
  const holders = holdersIn(state);
  const queue = new Set(
    target.kind === "service" ? [target.service] : claimsOn(target).map(claimText).flatMap(holders),
  );
  if (queue.size === 0 && target.kind === "host") return new Set(state.keys());
  // What is added on the way is gone through as well.
  for (const key of queue) {
    const service = state.service(key);
    if (service === undefined) continue;
    for (const claim of claimsOf(service)) for (const other of holders(claimText(claim))) queue.add(other);
  }
  return queue;
}

function holdersIn(state: ClusterView): (name: string) => readonly ServiceKey[] {
  const holders = new Map<string, ServiceKey[]>();
  for (const key of state.keys()) {
    const service = state.service(key);
    for (const name of service === undefined ? [] : claimsOf(service).map(claimText)) {
      const known = holders.get(name);
      if (known === undefined) holders.set(name, [key]);
      else known.push(key);
    }
  }
  return (name) => holders.get(name) ?? [];
}

/** The services that may have to do with a target: those that claim the same addresses and ports. */

import type { ClusterView, Service, ServiceKey } from "@fairlead/core";
import type { Target } from "./find.ts";

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

/** Something that only one service can have. */
type Claim =
  /** Canonical. */
  { readonly kind: "address"; readonly address: string } | { readonly kind: "nodePort"; readonly port: number };

/** Everything of a service that another one could have as well. */
function claimsOf({ clusterIPs, externalIPs, loadBalancerIPs, ports }: Service): readonly Claim[] {
  const addresses = [...clusterIPs, ...externalIPs, ...loadBalancerIPs];
  return [
    ...addresses.map((address): Claim => ({ kind: "address", address })),
    ...ports.flatMap(({ nodePort }): Claim[] => (nodePort === undefined ? [] : [{ kind: "nodePort", port: nodePort }])),
  ];
}

/** The claims that lead to the services of a target that names none: its port may be a node's. */
function claimsOn(target: Exclude<Target, { kind: "service" }>): readonly Claim[] {
  if (target.kind === "nodePort") return [{ kind: "nodePort", port: target.port }];
  const address: Claim = { kind: "address", address: target.address };
  return target.kind === "host" ? [address] : [address, { kind: "nodePort", port: target.port }];
}

/** `10.96.0.10`, `node port 30080` */
function claimText(claim: Claim): string {
  return claim.kind === "address" ? claim.address : `node port ${claim.port}`;
}

function holdersIn(state: ClusterView): (name: string) => readonly ServiceKey[] {
  const claims = [...state.keys()].flatMap((key) => {
    const service = state.service(key);
    return service === undefined ? [] : claimsOf(service).map((claim) => ({ key, name: claimText(claim) }));
  });
  const holders = Map.groupBy(claims, ({ name }) => name);
  return (name) => holders.get(name)?.map(({ key }) => key) ?? [];
}

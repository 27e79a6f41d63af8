import type { Service } from "@fairlead/core";
import type { Target } from "./explain/target.ts";

/** Something that only one service can have. */
export type Claim =
  /** Canonical. */
  { readonly kind: "address"; readonly address: string } | { readonly kind: "nodePort"; readonly port: number };

/** Everything of a service that another one could have as well. */
export function claimsOf({ clusterIPs, externalIPs, loadBalancerIPs, ports }: Service): readonly Claim[] {
  const addresses = [...clusterIPs, ...externalIPs, ...loadBalancerIPs];
  return [
    ...addresses.map((address): Claim => ({ kind: "address", address })),
    ...ports.flatMap(({ nodePort }): Claim[] => (nodePort === undefined ? [] : [{ kind: "nodePort", port: nodePort }])),
  ];
}

/** The claims that lead to the services of a target that names none: its port may be a node's. */
export function claimsOn(target: Exclude<Target, { kind: "service" }>): readonly Claim[] {
  if (target.kind === "nodePort") return [{ kind: "nodePort", port: target.port }];
  const address: Claim = { kind: "address", address: target.address };
  return target.kind === "host" ? [address] : [address, { kind: "nodePort", port: target.port }];
}

/** `10.96.0.10`, `node port 30080` */
export function claimText(claim: Claim): string {
  return claim.kind === "address" ? claim.address : `node port ${claim.port}`;
}

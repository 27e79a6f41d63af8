import { familyOf } from "@fairlead/base";
import type { IPFamily, Protocol, Service, ServicePortSpec, TrafficPolicy } from "../objects.ts";
import type { At, FrontendKind, Reach } from "../plan.ts";

/** A frontend that a service port asks for, before anything is known of its endpoints. */
export interface FrontendSpec {
  readonly kind: FrontendKind;
  /** Absent for node-port. */
  readonly address?: string;
  readonly port: number;
  readonly policy: TrafficPolicy;
  /** Another network serves it: it is not ours to program, nor another service's. */
  readonly left: boolean;
}

/** What of a service another network serves. */
export type Leaves = "nothing" | "cluster-ip" | "everything";

/**
 * The frontends of a service port in a family, in the order cluster-ip, external-ip, load-balancer, node-port.
 *
 * @param externalIPs `PlannerOptions.externalIPs`
 */
export function frontendSpecs(
  service: Service,
  port: ServicePortSpec,
  family: IPFamily,
  leaves: Leaves,
  externalIPs = true,
): readonly FrontendSpec[] {
  const leavesOthers = leaves === "everything";
  const ofKind = (kind: FrontendKind, addresses: readonly string[], left: boolean): FrontendSpec[] =>
    addresses
      .filter((address) => familyOf(address) === family)
      .map((address) => ({ kind, address, port: port.port, policy: policyOf(kind, service), left }));
  const specs = [
    ...ofKind("cluster-ip", service.clusterIPs, leaves !== "nothing"),
    ...ofKind("external-ip", externalIPs ? service.externalIPs : [], leavesOthers),
    ...ofKind("load-balancer", service.loadBalancerIPs, leavesOthers),
  ];
  if (port.nodePort === undefined) return specs;
  return [
    ...specs,
    { kind: "node-port", port: port.nodePort, policy: service.externalTrafficPolicy, left: leavesOthers },
  ];
}

/** What a kind of frontend is to backends. */
export const PLACES = {
  "cluster-ip": { reach: "internal", at: "address" },
  "external-ip": { reach: "external", at: "address" },
  "load-balancer": { reach: "external", at: "address" },
  "node-port": { reach: "external", at: "node-port" },
} as const satisfies Record<FrontendKind, { readonly reach: Reach; readonly at: At }>;

function policyOf(kind: FrontendKind, service: Service): TrafficPolicy {
  return { internal: service.internalTrafficPolicy, external: service.externalTrafficPolicy }[PLACES[kind].reach];
}

/** What only one service port can have, whatever kind of frontend asks for it. */
export function claimKey(protocol: Protocol, address: string | undefined, port: number): string {
  return [protocol, address ?? ANY, port].join(" ");
}

/** The address in a claim key; a node port's has none that any other could have. */
export function addressOfClaim(key: string): string {
  return key.split(" ")[1] ?? ANY;
}

const ANY = "*";

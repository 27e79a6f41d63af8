import { familyOf } from "@fairlead/base";
import type { IPFamily, Protocol, Service, ServicePortSpec, TrafficPolicy } from "../objects.ts";
import type { At, FrontendKind, Reach } from "../plan.ts";
import type { ClaimRank } from "./claims.ts";

/** A frontend that a service port asks for, before anything is known of its endpoints. */
export interface FrontendSpec {
  /** What kind of address it is. */
  readonly kind: FrontendKind;
  /** Absent at node-port, where the Service chooses none of the node's addresses. */
  readonly address?: string;
  /** 1…65535; the node port at node-port. */
  readonly port: number;
  /** The traffic policy that holds for it. */
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
 * @param nodePortsAt the addresses that the service chooses for its node ports; default: all that have node ports
 */
export function frontendSpecs(
  service: Service,
  port: ServicePortSpec,
  family: IPFamily,
  leaves: Leaves,
  externalIPs = true,
  nodePortsAt?: readonly string[],
): readonly FrontendSpec[] {
  const { internalTrafficPolicy: internal, externalTrafficPolicy: external } = service;
  return KINDS.flatMap(({ kind, reach, at, allocated, addresses }): FrontendSpec[] => {
    const policy = { internal, external }[reach];
    const left = allocated ? leaves !== "nothing" : leaves === "everything";
    if (at === "node-port") {
      return port.nodePort === undefined ? [] : nodePortSpecs({ kind, port: port.nodePort, policy, left }, nodePortsAt);
    }
    return addresses(service, externalIPs)
      .filter((address) => familyOf(address) === family)
      .map((address) => ({ kind, address, port: port.port, policy, left }));
  });
}

function nodePortSpecs(spec: FrontendSpec, chosen: readonly string[] | undefined): FrontendSpec[] {
  return chosen === undefined ? [spec] : chosen.map((address) => ({ ...spec, address }));
}

/** What a kind of frontend is. */
export interface FrontendKindFacts {
  readonly kind: FrontendKind;
  readonly reach: Reach;
  /** Where it is unless its Service chooses addresses for it. */
  readonly at: At;
  /** The API server allocates it to one Service; others are as their authors write them. */
  readonly allocated: boolean;
  /** What its claim to an address is worth against others. */
  readonly rank: ClaimRank;
  /** loadBalancerSourceRanges hold at it. */
  readonly gated: boolean;
  /** Where a Service has it. */
  addresses(service: Service, externalIPs: boolean): readonly string[];
}

/** All that depends on a kind; one without a row does not compile. */
export const FRONTEND_KINDS: { readonly [Kind in FrontendKind]: FrontendKindFacts & { readonly kind: Kind } } = {
  "cluster-ip": {
    kind: "cluster-ip",
    reach: "internal",
    at: "address",
    allocated: true,
    rank: "allocated",
    gated: false,
    addresses: ({ clusterIPs }) => clusterIPs,
  },
  "external-ip": {
    kind: "external-ip",
    reach: "external",
    at: "address",
    allocated: false,
    rank: "written",
    gated: false,
    addresses: (service, externalIPs) => (externalIPs ? service.externalIPs : []),
  },
  "load-balancer": {
    kind: "load-balancer",
    reach: "external",
    at: "address",
    allocated: false,
    rank: "status",
    gated: true,
    addresses: ({ loadBalancerIPs }) => loadBalancerIPs,
  },
  "node-port": {
    kind: "node-port",
    reach: "external",
    at: "node-port",
    allocated: false,
    rank: "chosen",
    gated: false,
    addresses: () => [],
  },
};

const KINDS: readonly FrontendKindFacts[] = Object.values(FRONTEND_KINDS);

/** What only one service port can have, whatever kind of frontend asks for it. */
export function claimKey(protocol: Protocol, address: string | undefined, port: number): string {
  return [protocol, address ?? ANY, port].join(" ");
}

/** The address in a claim key; a node port's has none that any other could have. */
export function addressOfClaim(key: string): string {
  return key.split(" ")[1] ?? ANY;
}

const ANY = "*";

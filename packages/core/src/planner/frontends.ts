/** The frontends of a service: each address and port at which it is reachable, and the claims on them. */

import { familyOf } from "@fairlead/base";
import {
  type IPFamily,
  type Protocol,
  type Service,
  type ServiceKey,
  type ServicePortSpec,
  serviceKey,
  type TrafficPolicy,
} from "../objects.ts";
import type { At, FrontendKind, Reach, ServicePortGroup } from "../plan.ts";
import { Claimants, ClaimIndex, type ClaimRank, type GroupClaims } from "./claims.ts";

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

interface FrontendKindFacts {
  readonly kind: FrontendKind;
  readonly reach: Reach;
  /** Where it is unless its Service chooses addresses for it. */
  readonly at: At;
  /** The API server allocates it to one Service; others are as their authors write them. */
  readonly allocated: boolean;
  /** What its claim to an address is worth against others. */
  readonly rank: ClaimRank;
  /** `ModeSemantics.terminatingStandIn`: endpoints that terminate may stand in for ready ones at it. */
  readonly takesTerminating: boolean;
  /** `ModeSemantics.preserveDestination`: what such a Service keeps to this node at it. */
  readonly preserves?: "destination" | "node";
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
    takesTerminating: true,
    addresses: ({ clusterIPs }) => clusterIPs,
  },
  "external-ip": {
    kind: "external-ip",
    reach: "external",
    at: "address",
    allocated: false,
    rank: "written",
    takesTerminating: false,
    addresses: (service, externalIPs) => (externalIPs ? service.externalIPs : []),
  },
  "load-balancer": {
    kind: "load-balancer",
    reach: "external",
    at: "address",
    allocated: false,
    rank: "status",
    takesTerminating: true,
    preserves: "destination",
    addresses: ({ loadBalancerIPs }) => loadBalancerIPs,
  },
  "node-port": {
    kind: "node-port",
    reach: "external",
    at: "node-port",
    allocated: false,
    rank: "chosen",
    takesTerminating: false,
    preserves: "node",
    addresses: () => [],
  },
};

/** What only one service port can have, whatever kind of frontend asks for it. */
export function claimKey(protocol: Protocol, address: string | undefined, port: number): string {
  return [protocol, address ?? ANY, port].join(" ");
}

export interface ServiceClaims {
  readonly claims: readonly GroupClaims[];
  /** Its ClusterIP, where another network serves that. */
  readonly foreignClusterIP: string | undefined;
}

const NOTHING: ServiceClaims = { claims: [], foreignClusterIP: undefined };

/**
 * The frontends that are claimed in a family, each for one service port, and the ClusterIPs that other networks serve:
 * these are claimed as a whole, whatever the port, since a mode may take all that goes to an address (ipvs binds it).
 * The cost of a change follows the claims that change, and for the ClusterIP of another network its authors.
 */
export class FrontendClaims {
  readonly #index = new ClaimIndex();
  /** Services by their ClusterIP that another network serves. */
  readonly #foreign = new Map<string, Claimants>();
  /** Services by the addresses that they have written as external ones, or have from a load balancer. */
  readonly #written = new Map<string, Set<ServiceKey>>();

  /** Who has a frontend: the id of a group, or the key of a foreign service whose ClusterIP it is. */
  holder(claim: string): string | undefined {
    const exact = this.#index.holder(claim);
    const owner = this.#foreignOwner(claim);
    const keeps = owner === undefined || this.#index.isAllocated(claim) || isOf(exact, owner);
    return keeps ? exact : owner;
  }

  /** The foreign service that has a frontend since its ClusterIP is in it. */
  foreignHolder(claim: string): string | undefined {
    const owner = this.#foreignOwner(claim);
    const holder = this.holder(claim);
    return owner !== undefined && (holder === owner || isOf(holder, owner)) ? owner : undefined;
  }

  #foreignOwner(claim: string): string | undefined {
    return this.#foreign.size === 0 ? undefined : this.#foreign.get(addressOfClaim(claim))?.first;
  }

  /** Replaces what a service claims; gives the others that gained or lost a frontend by it. */
  replace(service: ServiceKey, before: ServiceClaims = NOTHING, after: ServiceClaims = NOTHING): readonly ServiceKey[] {
    const moved = new Set([...this.#index.replace(before.claims, after.claims)].map(serviceOfGroup));
    for (const address of writtenAddresses(before.claims)) this.#unwrite(address, service);
    for (const address of writtenAddresses(after.claims)) this.#write(address, service);
    if (before.foreignClusterIP !== after.foreignClusterIP) {
      for (const address of [before.foreignClusterIP, after.foreignClusterIP]) {
        for (const other of this.#written.get(address ?? "") ?? []) moved.add(other);
      }
      this.#moveForeign(service, before.foreignClusterIP, after.foreignClusterIP);
    }
    moved.delete(service);
    return [...moved];
  }

  #write(address: string, service: ServiceKey): void {
    const services = this.#written.get(address);
    if (services === undefined) this.#written.set(address, new Set([service]));
    else services.add(service);
  }

  #unwrite(address: string, service: ServiceKey): void {
    const services = this.#written.get(address);
    services?.delete(service);
    if (services?.size === 0) this.#written.delete(address);
  }

  #moveForeign(service: ServiceKey, from: string | undefined, to: string | undefined): void {
    const old = from === undefined ? undefined : this.#foreign.get(from);
    old?.delete(service);
    if (from !== undefined && old?.size === 0) this.#foreign.delete(from);
    if (to === undefined) return;
    const owners = this.#foreign.get(to);
    if (owners === undefined) this.#foreign.set(to, new Claimants([service]));
    else owners.add(service);
  }
}

/**
 * Which group serves an address or a node port, in one family. Frontends that are left to another network are not
 * there.
 */
export interface FrontendLookup<Group extends ServicePortGroup = ServicePortGroup> {
  /** The family of the addresses. */
  readonly family: IPFamily;
  /** The group at a canonical address and port; undefined where nothing is served. */
  at(protocol: Protocol, address: string, port: number): Group | undefined;
  /** The group at a node port; undefined where nothing is served. */
  atNodePort(protocol: Protocol, port: number): Group | undefined;
}

function nodePortSpecs(spec: FrontendSpec, chosen: readonly string[] | undefined): FrontendSpec[] {
  return chosen === undefined ? [spec] : chosen.map((address) => ({ ...spec, address }));
}

const KINDS: readonly FrontendKindFacts[] = Object.values(FRONTEND_KINDS);

/** The address in a claim key; a node port's has none that any other could have. */
function addressOfClaim(key: string): string {
  return key.split(" ")[1] ?? ANY;
}

const ANY = "*";

function writtenAddresses(claims: readonly GroupClaims[]): ReadonlySet<string> {
  return new Set(claims.filter(({ rank }) => rank !== "allocated").flatMap(({ keys }) => keys.map(addressOfClaim)));
}

function isOf(group: string | undefined, service: string): boolean {
  return group !== undefined && serviceOfGroup(group) === service;
}

/** `namespace/name` at the head of a group's id; neither can hold `:` or `/`. */
function serviceOfGroup(id: string): ServiceKey {
  const [namespace = "", rest = ""] = id.split("/");
  return serviceKey(namespace, rest.split(":")[0] ?? "");
}

import { type ServiceKey, serviceKey } from "../objects.ts";
import { Claimants } from "./claimants.ts";
import { ClaimIndex, type GroupClaims } from "./claims.ts";
import { addressOfClaim } from "./frontend-spec.ts";

/** What a service claims in a family. */
export interface ServiceClaims {
  readonly claims: readonly GroupClaims[];
  /** Its ClusterIP, where another network serves that. */
  readonly foreignClusterIP: string | undefined;
}

const NOTHING: ServiceClaims = { claims: [], foreignClusterIP: undefined };

/**
 * The frontends that are claimed in a family, each for one service port, and the ClusterIPs that other networks serve:
 * these are claimed as a whole, whatever the port, since a mode may take all that goes to an address (ipvs binds it).
 * The cost of a change follows the claims that change, and for the ClusterIP of another network those who wrote it.
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

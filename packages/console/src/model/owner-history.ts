import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily, OwnershipDecision, Planner, ServiceKey } from "@fairlead/core";
import type { OwnerChange } from "../protocol/index.ts";

/** Changes of one service, and services with changes, that are kept: the latest. */
const MOST_CHANGES = 20;
const MOST_SERVICES = 2_000;

/** Who serves a service, by family. */
export type Owners = Readonly<Partial<Record<IPFamily, OwnershipDecision>>>;

/** Who served each service before, as far as it was watched. */
export class OwnerHistory {
  /** The service that changed last comes last. */
  readonly #changes = new Map<ServiceKey, readonly OwnerChange[]>();

  of(service: ServiceKey): readonly OwnerChange[] {
    return this.#changes.get(service) ?? [];
  }

  /** @param before of the same services, before a change */
  take(before: ReadonlyMap<ServiceKey, Owners>, after: ReadonlyMap<ServiceKey, Owners>, at: number): void {
    for (const [service, now] of after) this.#take(service, before.get(service) ?? {}, now, at);
  }

  #take(service: ServiceKey, before: Owners, after: Owners, at: number): void {
    const found = IP_FAMILIES.flatMap((family): readonly OwnerChange[] => {
      const [old, now] = [before[family]?.ownership, after[family]?.ownership];
      if (old === now) return [];
      const why = after[family]?.why;
      return [{ at, family, ...(old && { before: old }), ...(now && { after: now }), ...(why && { why }) }];
    });
    if (found.length === 0) return;
    const all = [...this.of(service), ...found].slice(-MOST_CHANGES);
    this.#changes.delete(service);
    this.#changes.set(service, all);
    const [oldest] = this.#changes.keys();
    if (this.#changes.size > MOST_SERVICES && oldest !== undefined) this.#changes.delete(oldest);
  }
}

/** Who serves it now, in each family that it has. */
export function ownersNow(planner: Pick<Planner, "ownership">, service: ServiceKey): Owners {
  const owners = IP_FAMILIES.map((family) => [family, planner.ownership(service, family)] as const);
  return Object.fromEntries(owners.filter(([, decision]) => decision !== undefined));
}

import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import type { Hex, NftSet, SetElement } from "@fairlead/netfilter/nft";
import { groupParts, type PoolUse } from "./group-parts.ts";
import { endpointValue } from "./keys.ts";
import { kubeProxyAffinitySet } from "./names.ts";
import { type PlacedBefore, type Placement, type Pool, place } from "./placement.ts";
import type { Programmed } from "./programmed.ts";
import { clientsSet, stickyMap } from "./sticky.ts";
import type { Before } from "./write-table.ts";

const SLOTS = /^(?:nodeport-)?(?:local-)?sticky-endpoints-\d+$/;
const CLIENTS = /^(?:nodeport-)?(?:local-)?clients-\d+-\d+$/;
const KUBE_PROXYS = /^affinity-.*\//;

/** Whether a set holds clients, or says which endpoint they belong to: this mode's own, and kube-proxy's. */
export function remembers({ name }: Pick<NftSet, "name">): boolean {
  return SLOTS.test(name) || CLIENTS.test(name) || KUBE_PROXYS.test(name);
}

/**
 * Affinity over a table that is made anew: endpoints keep their slots, and clients are remembered as long as they would
 * have been.
 */
export class Remembered implements Before {
  readonly #sets: ReadonlyMap<string, NftSet>;
  readonly #placements: ReadonlyMap<string, Placement>;

  /**
   * @param sets of the table that is there
   * @param placements where it is known what was written last
   */
  constructor(sets: ReadonlyMap<string, NftSet>, placements: ReadonlyMap<string, Placement> = new Map()) {
    this.#sets = sets;
    this.#placements = placements;
  }

  placed(group: ServicePortGroup): PlacedBefore | undefined {
    const known = this.#placements.get(group.id);
    if (known !== undefined || group.affinitySeconds === undefined || this.#sets.size === 0) return known;
    const draft = place(group);
    const before: Partial<Record<EndpointSetName, Partial<Pool>>> = {};
    for (const use of groupParts(draft).uses.values()) {
      const set = use.pool === draft.cluster ? "cluster" : "local";
      const slots = this.#slotsOf(use);
      if (slots.length > 0) before[set] ??= { sticky: { timeout: group.affinitySeconds, slots } };
    }
    return before;
  }

  *clients({ placements, structures }: Programmed): Generator<readonly [string, SetElement]> {
    for (const { name, elements } of this.#sets.values()) {
      if (!CLIENTS.test(name) || !structures.has(name)) continue;
      for (const { key, expires } of elements.values()) yield [name, { key, ...(expires && { expires }) }];
    }
    if (![...this.#sets.keys()].some((name) => KUBE_PROXYS.test(name))) return;
    for (const placement of placements.values()) {
      for (const use of groupParts(placement).uses.values()) yield* this.#kubeProxys(placement.group, use);
    }
  }

  /** kube-proxy remembers clients for each endpoint, whatever the frontend; here each frontend has its own. */
  *#kubeProxys(
    { name, protocol }: ServicePortGroup,
    { kind, key, pool }: PoolUse,
  ): Generator<readonly [string, SetElement]> {
    const { sticky } = pool;
    for (const [slot, endpoint] of sticky?.slots.entries() ?? []) {
      if (sticky === undefined || endpoint === undefined) continue;
      const theirs = this.#sets.get(kubeProxyAffinitySet(name, protocol, endpoint));
      for (const { key: client, expires = 0 } of theirs?.elements.values() ?? []) {
        const left = Math.min(expires, 1000 * sticky.timeout);
        if (left > 0) yield [clientsSet(kind, sticky.timeout, slot), { key: client + key, expires: left }];
      }
    }
  }

  #slotsOf({ kind, key, pool }: PoolUse): (PlanEndpoint | undefined)[] {
    const byValue = new Map<Hex, PlanEndpoint>(pool.slots.map((endpoint) => [endpointValue(endpoint), endpoint]));
    const slots: (PlanEndpoint | undefined)[] = [];
    for (let slot = 0; slot < 2 * pool.size; slot++) {
      const value = this.#sets.get(stickyMap(kind, slot))?.elements.get(key)?.value;
      if (typeof value === "string") slots[slot] = byValue.get(value);
    }
    return Array.from(slots);
  }
}

import { type Hex, lengthOf, type NftSet } from "@fairlead/netfilter/nft";
import { groupParts } from "../group-parts.ts";
import type { Placement } from "../placement.ts";
import { type Known, numbersByValue, type Sticky, stickyOf } from "./known.ts";

/**
 * Versions before this one had a set of clients for each slot and timeout, and for each slot a map of the endpoints
 * that had it, by frontend.
 */
const SLOT = /^((?:nodeport-)?(?:local-)?)sticky-endpoints-(\d+)$/;
const CLIENTS = /^((?:nodeport-)?(?:local-)?)clients-\d+-(\d+)$/;

export function isEarlier(name: string): boolean {
  return SLOT.test(name) || CLIENTS.test(name);
}

/** Clients as such a table has them: each frontend had its own. */
export function* earlierClients(
  sets: ReadonlyMap<string, NftSet>,
  placements: ReadonlyMap<string, Placement>,
): Generator<Known | undefined> {
  if (![...sets.keys()].some((name) => CLIENTS.test(name))) return;
  const frontends = yield* stickyFrontends(placements);
  for (const [name, set] of sets) {
    const [, prefix, slot] = CLIENTS.exec(name) ?? [];
    if (prefix === undefined) continue;
    const address = 2 * lengthOf(set.key.slice(0, 1));
    const endpoints = sets.get(`${prefix}sticky-endpoints-${slot}`)?.elements;
    for (const { key, expires = 0 } of set.elements.values()) {
      const [client, frontend] = [key.slice(0, address), key.slice(address)];
      const value = endpoints?.get(frontend)?.value;
      const sticky = frontends.get(prefix + frontend);
      const endpoint = typeof value === "string" ? sticky?.endpoints.get(value) : undefined;
      yield sticky && endpoint !== undefined ? { ...sticky, client, endpoint, expires } : undefined;
    }
  }
}

/** By prefix of the sets' names and key. */
function* stickyFrontends(placements: ReadonlyMap<string, Placement>) {
  const frontends = new Map<Hex, Sticky & { readonly endpoints: ReadonlyMap<Hex, number> }>();
  for (const sticky of stickyOf(placements.values())) {
    const found = { ...sticky, endpoints: numbersByValue(sticky) };
    for (const { kind, key } of groupParts(sticky.placement).uses.values()) {
      // The ClusterIP's stood there under internal policy Local, too.
      for (const prefix of new Set([kind.prefix, kind.prefix.replace("local-", "")]))
        frontends.set(prefix + key, found);
    }
    yield undefined;
  }
  return frontends;
}

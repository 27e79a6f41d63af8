import type { ServicePortGroup } from "@fairlead/core";
import { type Hex, hostHex, type NftSet, type SetElement } from "@fairlead/netfilter/nft";
import { rememberedValue } from "../keys.ts";
import type { PlacedBefore, Placement } from "../placement.ts";
import { CLIENTS_SIZE } from "../sticky-sets.ts";
import type { Before } from "../write-table.ts";
import { earlierClients, isEarlier } from "./earlier.ts";
import type { Known } from "./known.ts";
import { isKubeProxys, kubeProxyClients } from "./kube-proxys.ts";
import { isOwn, ownClients } from "./own.ts";

/** Whether a set holds clients, or says which endpoint they belong to: this mode's own, and kube-proxy's. */
export function remembers({ name }: Pick<NftSet, "name">): boolean {
  return isOwn(name) || isEarlier(name) || isKubeProxys(name);
}

/**
 * Affinity over a table that is made anew: clients are remembered as long as they would have been, those of endpoints
 * that are still there.
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

  /** The table is numbered anew. */
  placed({ id }: ServicePortGroup): PlacedBefore | undefined {
    const { memory: _, ...placed } = this.#placements.get(id) ?? {};
    return placed;
  }

  /**
   * A client that several sets have goes where it was last. Where kube-proxy has left sets, it was the last to serve:
   * it removes none of this mode's, and this mode all of its.
   */
  *clients(placements: ReadonlyMap<string, Placement>): Generator<SetElement | undefined> {
    const found = new Map<Hex, SetElement>();
    for (const source of [kubeProxyClients, ownClients, earlierClients]) {
      const latest = new Map<Hex, SetElement>();
      for (const known of source(this.#sets, placements)) {
        const element = known && elementOf(known);
        if (element !== undefined && !found.has(element.key)) keepLater(latest, element);
        yield undefined;
      }
      for (const [key, element] of latest) {
        if (found.size < CLIENTS_SIZE) found.set(key, element);
      }
    }
    yield* found.values();
  }
}

function keepLater(latest: Map<Hex, SetElement>, element: SetElement): void {
  const before = latest.get(element.key);
  if ((before?.expires ?? 0) < (element.expires ?? 0)) latest.set(element.key, element);
}

/** @returns undefined: it is remembered no longer */
function elementOf({ client, memory, endpoint, affinitySeconds, expires }: Known): SetElement | undefined {
  const timeout = affinitySeconds * 1000;
  const left = Math.min(expires, timeout);
  if (left <= 0) return undefined;
  const number = hostHex(memory.number);
  return { key: number + client, value: rememberedValue(number, endpoint), timeout, expires: left };
}

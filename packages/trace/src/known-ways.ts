import type { End } from "./end.ts";
import { goesOnAlike, walkKey } from "./same-walk.ts";
import type { List, Walk } from "./walk.ts";

/** A walk as it was when it came to a hook, and what became of it. */
interface KnownWay {
  readonly arrival: Walk;
  readonly final: Walk;
  readonly end: End;
}

/**
 * What need not be compared of walks of one key that come to a hook: what the key has, and how they came there, which
 * the way on does not depend on.
 */
const ANY: ReadonlySet<keyof Walk> = new Set(["source", "destination", "probability", "visits", "stage", "index"]);

/**
 * Ways of one packet that were walked to their end. Rules that draw again where nothing was drawn (the endpoint maps of
 * the nftables mode) lead many to one destination; from the next hook on all of them are the same way.
 */
export class KnownWays {
  readonly #known = new Map<string, KnownWay[]>();
  /** Of the walk that is on its way, since it last forked. */
  #arrivals: Walk[] = [];
  #forked = false;

  /** A walk begins, or goes on where another one forked. */
  begin(): void {
    this.#arrivals = [];
  }

  /** From before a fork on there is no one end. */
  fork(): void {
    this.#arrivals = [];
    this.#forked = true;
  }

  /**
   * Takes a walk that has come to a hook to its end, if another one came there alike.
   *
   * @returns undefined: none did; this one may be the first
   */
  follow(walk: Walk): End | undefined {
    if (!this.#forked) return undefined;
    const known = this.#known.get(hookKey(walk))?.find(({ arrival }) => goesOnAlike(arrival, walk, ANY));
    if (known === undefined) {
      this.#arrivals.push({ ...walk });
      return undefined;
    }
    const { probability } = walk;
    const visits = appended(walk.visits, known.final.visits, known.arrival.visits);
    Object.assign(walk, known.final, { probability, visits });
    return known.end;
  }

  end(walk: Walk, end: End): void {
    for (const arrival of this.#arrivals) {
      const key = hookKey(arrival);
      const alike = this.#known.get(key) ?? [];
      this.#known.set(key, alike);
      alike.push({ arrival, final: walk, end });
    }
  }
}

function hookKey(walk: Walk): string {
  return `${walk.hook} ${walkKey(walk)}`;
}

/** A list with what another one has from one place of it on. */
function appended<Item>(
  list: List<Item> | undefined,
  other: List<Item> | undefined,
  from: List<Item> | undefined,
): List<Item> | undefined {
  if (other === undefined || other === from) return list;
  return { item: other.item, before: appended(list, other.before, from) };
}

import type { NetworkSource } from "../sources/source.ts";
import type { Claim, Side } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import { SourceFacts } from "./facts.ts";
import { hearGone, hearSaid } from "./hear.ts";
import type { LastKnown } from "./last-known.ts";
import type { NetworksSettings } from "./types.ts";

/** A source with what is known of it. */
export interface Followed {
  readonly side: Side;
  readonly source: NetworkSource;
  readonly facts: SourceFacts;
  /** Its first complete list was taken in, by this process or the one before. */
  wasComplete: boolean;
  /** What it did not say when it was heard last is gone. */
  heardAll: boolean;
}

/** All sources, and how what they say becomes claims. */
export class FollowedSources {
  readonly #claims: ClaimTable;
  readonly #sources: ReadonlyMap<string, Followed>;

  /** @param known what the process before this one knew; it counts at once */
  constructor(sources: NetworksSettings["sources"], claims: ClaimTable, { sources: known }: LastKnown) {
    this.#claims = claims;
    const follow = (side: Side, source: NetworkSource): Followed => {
      const before = known.get(scopeOf(side, source));
      for (const { cidr, objects, since, gone } of before ?? []) {
        claims.put({ side, source: source.id, cidr, objects, since, stage: "effective", ...(gone && { gone }) });
      }
      return { side, source, facts: new SourceFacts(source), wasComplete: before !== undefined, heardAll: false };
    };
    this.#sources = new Map(
      (["excluded", "own"] as const).flatMap((side) =>
        sources[side].map((source): [string, Followed] => [source.id, follow(side, source)]),
      ),
    );
  }

  all(): Iterable<Followed> {
    return this.#sources.values();
  }

  /** @throws RangeError when there is no such source */
  facts(source: string): SourceFacts {
    const found = this.#sources.get(source);
    if (found === undefined) throw new RangeError(`unknown source ${source}`);
    return found.facts;
  }

  /** What there is to know at a start is known. */
  get settled(): boolean {
    return [...this.#sources.values()].every(({ facts, wasComplete }) => wasComplete || facts.settled);
  }

  /**
   * Takes in what objects say now, as far as it differs from what was heard last.
   *
   * @param now milliseconds since the epoch
   */
  *hear(now: number): Generator<void, void> {
    for (const followed of this.#sources.values()) yield* this.#hear(followed, now);
  }

  *#hear(followed: Followed, now: number): Generator<void, void> {
    const { side, source, facts, heardAll } = followed;
    const { complete } = facts;
    const speaker = { side, source: source.id };
    const unsaid: Claim[] = [];
    // All at once: what comes between two steps is heard whole, with the next decision.
    const changed = Array.from(facts.take(), (cidr) => [cidr, facts.said(cidr)] as const);
    for (const [cidr, said] of changed) {
      if (said !== undefined) hearSaid(this.#claims, speaker, cidr, said);
      else unsaid.push(...this.#claims.at(cidr));
      yield;
    }
    if (complete && !heardAll) unsaid.push(...this.#claims.all());
    followed.heardAll = complete;
    followed.wasComplete ||= complete;
    if (!complete) return;
    for (const claim of unsaid) {
      if (claim.side !== side || claim.source !== source.id || facts.said(claim.cidr) !== undefined) continue;
      hearGone(this.#claims, claim, now);
      yield;
    }
  }

  /** For a file that outlives the agent: what counts, of the sources that were complete once. */
  known(): LastKnown["sources"] {
    const counting = Array.from(this.#claims.all()).filter(({ stage }) => stage === "effective");
    const effective = Map.groupBy(counting, ({ side, source }) => `${side} ${source}`);
    const complete = [...this.#sources.values()].filter(({ wasComplete }) => wasComplete);
    return new Map(
      complete.map(({ side, source }) => {
        const cidrs = effective.get(`${side} ${source.id}`) ?? [];
        const kept = cidrs.map(({ cidr, objects, since = 0, gone }) => ({
          cidr,
          objects,
          since,
          ...(gone && { gone }),
        }));
        return [scopeOf(side, source), kept] as const;
      }),
    );
  }
}

/** The text under which what it said is remembered. */
function scopeOf(side: Side, { scope }: NetworkSource): string {
  return `${side} ${scope}`;
}

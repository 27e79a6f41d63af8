import type { NetworkSource } from "../sources/source.ts";
import type { Side } from "./claim.ts";
import type { SourceFacts } from "./facts.ts";

/** A source with what is known of it. */
export interface Followed {
  readonly side: Side;
  readonly source: NetworkSource;
  readonly facts: SourceFacts;
  /** Its first complete list was taken in, by this process or the one before. */
  wasComplete: boolean;
}

/** The text under which what it said is remembered. */
export function scopeOf(side: Side, { scope }: NetworkSource): string {
  return `${side} ${scope}`;
}

import { prefixLengthOf } from "@fairlead/base";

/** On whose side a CIDR is: another network's, or this proxy's own. */
export type Side = "excluded" | "own";

/**
 * What became of a learned CIDR. `pending`: undecided; `held`: it would turn too many services foreign; `refused`:
 * it must not count; `effective`: it counts.
 */
export type Stage = "pending" | "effective" | "held" | "refused";

/** A CIDR that a source says, by one or several of its objects. Never changed: another one takes its place. */
export interface Claim {
  readonly side: Side;
  readonly source: string;
  /** Canonical; as it was written where it is not a CIDR. */
  readonly cidr: string;
  /** `Subnet/ovn-default`, sorted; those that said it last, when none says it any more. */
  readonly objects: readonly string[];
  readonly stage: Stage;
  /** Why it is held or refused. */
  readonly why?: string | undefined;
  /** Since when it counts, milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** It counts whatever it turns foreign: it was in the source's first complete list, or an operator accepted it. */
  readonly consented: boolean;
  /** Monotonic milliseconds since when an object says it; absent: one did before this process began. */
  readonly saidSince?: number | undefined;
  /** It is no CIDR that could ever count. */
  readonly unusable?: true | undefined;
  /** No object says it any more. */
  readonly gone?: Gone | undefined;
}

/** What is left of a CIDR that no object says any more. */
interface Gone {
  /** Monotonic milliseconds. */
  readonly at: number;
  /** Monotonic milliseconds since when no endpoint has been seen in it; absent: one was at the last look. */
  readonly emptySince?: number;
}

export function claimKey({ side, source, cidr }: Pick<Claim, "side" | "source" | "cidr">): string {
  return `${side} ${source} ${cidr}`;
}

/** The more specific first, then by text: an order that does not depend on the history. */
export function bySpecificity(a: { readonly cidr: string }, b: { readonly cidr: string }): number {
  return prefixLengthOf(b.cidr) - prefixLengthOf(a.cidr) || (a.cidr < b.cidr ? -1 : Number(a.cidr > b.cidr));
}

/** Tells the claims of a side that count. */
export function countsAs(wanted: Side): (claim: Claim) => boolean {
  return ({ side, stage }) => side === wanted && stage === "effective";
}

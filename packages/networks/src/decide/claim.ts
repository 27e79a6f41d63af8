/** On whose side a CIDR is: another network's, or this proxy's own. */
export type Side = "excluded" | "own";

/**
 * What became of a learned CIDR. `pending`: undecided; `held`: it lies in a CIDR of ours and takes effect once it is
 * accepted; `refused`: it must not take effect; `effective`: it decides.
 */
export type Stage = "pending" | "effective" | "held" | "refused";

/** A CIDR that one or several objects of a source define. Immutable: a change makes another one. */
export interface Claim {
  readonly side: Side;
  readonly source: string;
  /** Canonical; as written where it is not a CIDR. */
  readonly cidr: string;
  /** `Subnet/ovn-default`, sorted; the last ones, when no object defines it anymore. */
  readonly objects: readonly string[];
  readonly stage: Stage;
  /** Why it is held or refused. */
  readonly why?: string | undefined;
  /** Since when it is in effect, milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** It is not a CIDR that could ever take effect. */
  readonly unusable?: true | undefined;
  /** No object defines it anymore; it is forgotten after the removal delay. */
  readonly gone?: Gone | undefined;
}

/** Since when no object defines a CIDR. */
export interface Gone {
  /** Milliseconds since the epoch; absent: since then the source cannot be read, so this is not known to be true. */
  readonly at?: number;
}

export function claimKey({ side, source, cidr }: Pick<Claim, "side" | "source" | "cidr">): string {
  return `${side} ${source} ${cidr}`;
}

/** Whether a claim of a side is in effect. */
export function countsAs(wanted: Side): (claim: Claim) => boolean {
  return ({ side, stage }) => side === wanted && stage === "effective";
}

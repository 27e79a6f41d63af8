import type { Claim, Side, Stage } from "./claim.ts";
import type { Conflict } from "./conflicts.ts";
import type { ResourceState, SourceState } from "./facts.ts";
import type { Followed } from "./followed.ts";

/** What a source is worth now. */
export interface SourceReport {
  readonly source: string;
  /** `rules`: the labels of namespaces, for the rules for services. */
  readonly side: Side | "rules";
  readonly state: SourceState;
  /** Resources of it that may not be read: `vpcs.kubeovn.io`. Absent: none. */
  readonly forbidden?: readonly string[];
}

/** A learned CIDR, where it came from and what became of it. */
export interface CIDRReport {
  readonly cidr: string;
  readonly side: Side;
  readonly source: string;
  /** `Subnet/ovn-default` */
  readonly objects: readonly string[];
  readonly stage: Stage;
  /** Why it is held or refused, or counts although no object says it any more. */
  readonly why?: string;
  /** Since when it counts, RFC 3339. */
  readonly since?: string;
}

export interface NetworksReport {
  readonly sources: readonly SourceReport[];
  /** In the order of side, source and text. */
  readonly cidrs: readonly CIDRReport[];
  /** How many services would be foreign if what is held counted, since the last consent; 0: nothing is held. */
  readonly heldBack: number;
  /** CIDRs of both sides that lie in each other. */
  readonly conflicts: readonly Conflict[];
}

/** @param namespaces undefined: no rule asks for them */
export function report(
  followed: Iterable<Followed>,
  namespaces: ResourceState | undefined,
  claims: Iterable<Claim>,
  heldBack: number,
  conflicts: readonly Conflict[],
): NetworksReport {
  const sources = sourceReports(followed, namespaces);
  const key = ({ side, source, cidr }: CIDRReport) => `${side} ${source} ${cidr}`;
  const cidrs = Array.from(claims, cidrReport).sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { sources, cidrs, heldBack, conflicts };
}

/** @param namespaces undefined: no rule asks for them */
export function sourceReports(
  followed: Iterable<Followed>,
  namespaces: ResourceState | undefined,
): readonly SourceReport[] {
  return [
    ...Array.from(followed, ({ side, source, facts: { state, forbidden } }) => {
      const names = forbidden.map(({ plural, group }) => (group === "" ? plural : `${plural}.${group}`));
      return { source: source.id, side, state, ...(names.length > 0 && { forbidden: names }) };
    }),
    ...(namespaces === undefined ? [] : [{ source: "namespaces", side: "rules" as const, state: namespaces }]),
  ];
}

const KEPT = "no object defines it anymore; it stays in effect until the removal delay after its last endpoint is over";

export function cidrReport({ cidr, side, source, objects, stage, why, since, gone }: Claim): CIDRReport {
  const reason = why ?? (gone === undefined ? undefined : KEPT);
  return {
    cidr,
    side,
    source,
    objects,
    stage,
    ...(reason === undefined ? {} : { why: reason }),
    ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
  };
}

import { CONSENT_NAME } from "../sources/resources.ts";
import type { Claim, Side, Stage } from "./claim.ts";
import type { Conflict } from "./conflicts.ts";
import type { ResourceState, SourceState } from "./facts.ts";
import type { Followed } from "./followed.ts";

/** What a source is worth now. */
export interface SourceReport {
  /** The source's name in the configuration, such as `kube-ovn-subnets`. */
  readonly source: string;
  /** `rules`: the labels of namespaces, for the rules for services; `consent`: the object `fairlead-networks`. */
  readonly side: Side | "rules" | "consent";
  /** Whether its objects are listed. */
  readonly state: SourceState;
  /** Resources of it that may not be read: `vpcs.kubeovn.io`. Absent: none. */
  readonly forbidden?: readonly string[];
}

/** A learned CIDR, where it came from and what became of it. */
export interface CIDRReport {
  /** Canonical. */
  readonly cidr: string;
  /** The side that it is on. */
  readonly side: Side;
  /** The source that it was learned from. */
  readonly source: string;
  /** `Subnet/ovn-default` */
  readonly objects: readonly string[];
  /** What became of it. */
  readonly stage: Stage;
  /** Why it is held or refused, or counts although no object says it anymore. */
  readonly why?: string;
  /** Since when it counts, RFC 3339. */
  readonly since?: string;
  /** No object defines it anymore. */
  readonly kept?: true;
}

/** Everything that was learned, for status pages and tools. */
export interface NetworksReport {
  /** In the order of the configuration. */
  readonly sources: readonly SourceReport[];
  /** In the order of side, source and text. */
  readonly cidrs: readonly CIDRReport[];
  /** CIDRs of both sides that lie in each other. */
  readonly conflicts: readonly Conflict[];
  /** The names of kube-ovn's default VPC, where a rule asks for it; absent: none is known. */
  readonly defaultVPCs?: readonly string[];
}

/** What is read in addition to the sources; undefined: nothing asks for it. */
export interface BesideStates {
  readonly namespaces: ResourceState | undefined;
  readonly vpcs: ResourceState | undefined;
  readonly consent: SourceState;
}

export function report(
  followed: Iterable<Followed>,
  beside: BesideStates,
  claims: Iterable<Claim>,
  conflicts: readonly Conflict[],
  defaultVPCs: ReadonlySet<string>,
): NetworksReport {
  const sources = sourceReports(followed, beside);
  const key = ({ side, source, cidr }: CIDRReport) => `${side} ${source} ${cidr}`;
  const cidrs = Array.from(claims, cidrReport).sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { sources, cidrs, conflicts, ...(defaultVPCs.size > 0 && { defaultVPCs: [...defaultVPCs] }) };
}

export function sourceReports(
  followed: Iterable<Followed>,
  { namespaces, vpcs, consent }: BesideStates,
): readonly SourceReport[] {
  return [
    ...Array.from(followed, ({ side, source, facts: { state, forbidden } }) => {
      const names = forbidden.map(({ plural, group }) => (group === "" ? plural : `${plural}.${group}`));
      return { source: source.id, side, state, ...(names.length > 0 && { forbidden: names }) };
    }),
    ...(namespaces === undefined ? [] : [{ source: "namespaces", side: "rules" as const, state: namespaces }]),
    ...(vpcs === undefined ? [] : [{ source: "vpcs", side: "rules" as const, state: vpcs }]),
    { source: CONSENT_NAME, side: "consent", state: consent },
  ];
}

const KEPT = "no object defines it anymore; it stays in effect until the removal delay is over";
const UNREADABLE =
  "no object defines it anymore, and its source cannot be read; it stays in effect until that is complete again";

export function cidrReport({ cidr, side, source, objects, stage, why, since, gone }: Claim): CIDRReport {
  const reason = why ?? (gone && (gone.at === undefined ? UNREADABLE : KEPT));
  return {
    cidr,
    side,
    source,
    objects,
    stage,
    ...(reason === undefined ? {} : { why: reason }),
    ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
    ...(gone && { kept: true }),
  };
}

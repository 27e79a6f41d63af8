/** Everything that can be said of the sources and their CIDRs, and what changed. */
import { familyOf, type IPFamily } from "@fairlead/base";
import type { Claim, Claims, Stage } from "./decide.ts";
import type { ResourceState, SourceFacts, SourceState } from "./facts.ts";
import type { Side } from "./settings.ts";
import type { Conflict } from "./sides.ts";
import { CONSENT_NAME, type NetworkSource } from "./source.ts";

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

/** A learned CIDR whose report differs from the one before. */
export interface CIDRChange {
  /** Absent: it is new. */
  readonly before?: CIDRReport;
  /** Absent: it is gone. */
  readonly after?: CIDRReport;
}

/** What changed since the update before. */
export interface NetworksUpdate {
  /** All of them. */
  readonly sources: readonly SourceReport[];
  /** In the order of side, source and text. */
  readonly changes: readonly CIDRChange[];
  /** How many learned CIDRs of other networks count, by source. */
  readonly counts: ReadonlyMap<string, Readonly<Record<IPFamily, number>>>;
  /** How many learned CIDRs are held. */
  readonly held: number;
}

/** What is read in addition to the sources; undefined: nothing asks for it. */
export interface OtherStates {
  readonly namespaces: ResourceState | undefined;
  readonly vpcs: ResourceState | undefined;
  readonly consent: SourceState;
}

export interface FollowedSource {
  readonly side: Side;
  readonly source: NetworkSource;
  readonly facts: Pick<SourceFacts, "state" | "forbidden">;
}

export function networksReport(
  followed: Iterable<FollowedSource>,
  others: OtherStates,
  claims: Claims,
  conflicts: readonly Conflict[],
  defaultVPCs: ReadonlySet<string>,
): NetworksReport {
  const sources = sourceReports(followed, others);
  const key = ({ side, source, cidr }: CIDRReport) => `${side} ${source} ${cidr}`;
  const cidrs = Array.from(claims.values(), cidrReport).sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { sources, cidrs, conflicts, ...(defaultVPCs.size > 0 && { defaultVPCs: [...defaultVPCs] }) };
}

/** @param before the claims of the update before */
export function networksUpdate(
  followed: Iterable<FollowedSource>,
  others: OtherStates,
  claims: Claims,
  before: Claims,
): NetworksUpdate {
  const keys = [...new Set([...before.keys(), ...claims.keys()])].filter((key) => before.get(key) !== claims.get(key));
  const changes = keys.sort().map((key): CIDRChange => {
    const [known, now] = [before.get(key), claims.get(key)];
    return { ...(known && { before: cidrReport(known) }), ...(now && { after: cidrReport(now) }) };
  });
  const counts = new Map<string, Record<IPFamily, number>>();
  let held = 0;
  for (const { side, source, cidr, stage } of claims.values()) {
    if (stage === "held") held++;
    if (stage !== "effective" || side === "own") continue;
    const count = counts.get(source) ?? { IPv4: 0, IPv6: 0 };
    count[familyOf(cidr)]++;
    counts.set(source, count);
  }
  return { sources: sourceReports(followed, others), changes, counts, held };
}

function sourceReports(
  followed: Iterable<FollowedSource>,
  { namespaces, vpcs, consent }: OtherStates,
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

function cidrReport({ cidr, side, source, objects, stage, why, since, gone }: Claim): CIDRReport {
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

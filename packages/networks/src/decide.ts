/**
 * Which learned CIDRs take effect, and why not: a pure function of what objects define now, the configuration, what the
 * operator accepted, and the decision before. Of that it needs what no object defines anymore, and since when.
 */
import { overlap, PrefixMap } from "@fairlead/base";
import type { LearnedCIDR, Ruling } from "./authority.ts";
import { accepts, forgets, type KnownConsent } from "./consent.ts";
import type { Definition } from "./facts.ts";
import type { Side } from "./settings.ts";

/**
 * What became of a learned CIDR. `held`: it lies in a CIDR of ours and takes effect once it is accepted; `refused`: it
 * must not take effect; `effective`: it decides.
 */
export type Stage = "effective" | "held" | "refused";

/** A CIDR that one or several objects of a source define. Immutable: a change makes another one. */
export interface Claim extends LearnedCIDR {
  /** `Subnet/ovn-default`, sorted; the last ones, when no object defines it anymore. */
  readonly objects: readonly string[];
  readonly stage: Stage;
  /** Why it is held or refused. */
  readonly why?: string | undefined;
  /** Since when it is in effect, milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** Why it can never take effect: it is not the CIDR of a network. */
  readonly problem?: string | undefined;
  /** No object defines it anymore; it is forgotten after the removal delay. */
  readonly gone?: Gone | undefined;
}

/** Since when no object defines a CIDR. */
export interface Gone {
  /** Milliseconds since the epoch; absent: since then the source cannot be read, so this is not known to be true. */
  readonly at?: number;
}

/** By side, source and CIDR. */
export type Claims = ReadonlyMap<string, Claim>;

export interface SourceNow {
  readonly side: Side;
  readonly id: string;
  readonly defined: ReadonlyMap<string, Definition>;
  /** A CIDR that is not in `defined` has no object. */
  readonly complete: boolean;
  /** The same, and its resource is there: what has no object may be forgotten. */
  readonly readable: boolean;
}

export interface ObjectsNow {
  readonly sources: readonly SourceNow[];
  /** Canonical. */
  readonly serviceCIDRs: readonly string[];
  readonly consent: Pick<KnownConsent, "read">;
}

export interface DecideSettings {
  readonly authority: (learned: LearnedCIDR) => Ruling;
  readonly removalDelayMs: number;
}

/**
 * Decides in steps of a CIDR. The order in which objects came changes nothing.
 *
 * @param before the last decision; a claim that is as it was there stays the same object
 * @param now milliseconds since the epoch
 */
export function* decide(
  objects: ObjectsNow,
  settings: DecideSettings,
  before: Claims,
  now: number,
): Generator<void, Claims> {
  const known = Map.groupBy(before.values(), ({ source }) => source);
  const claims = new Map<string, Claim>();
  let own: OwnCIDRs = PrefixMap.empty();
  // Ours first, since theirs depend on it.
  for (const side of ["own", "excluded"] as const) {
    for (const source of objects.sources.filter((one) => one.side === side)) {
      for (const claimed of claimedBy(source, known.get(source.id) ?? [], before, now)) {
        yield;
        const kept = keptOf(claimed, source, objects, settings, now);
        const claim = kept && judged(kept, objects, settings, side === "own" ? undefined : own, now);
        if (claim === undefined) continue;
        const key = claimKey(claim);
        claims.set(key, sameOr(before.get(key), claim));
      }
    }
    if (side === "own") own = ownOf(claims.values());
  }
  return claims;
}

export function claimKey({ side, source, cidr }: LearnedCIDR): string {
  return `${side} ${source} ${cidr}`;
}

type Claimed = Omit<Claim, "stage">;

function* claimedBy(
  { side, id, defined, complete }: SourceNow,
  known: readonly Claim[],
  before: Claims,
  now: number,
): Generator<Claimed, void> {
  for (const [cidr, { objects, problem, doubtful }] of defined) {
    const learned = { side, source: id, cidr };
    const claim = before.get(claimKey(learned));
    // Where it is unknown whether its objects count, it is neither learned nor taken away.
    if (doubtful !== true) yield { ...learned, objects, problem, since: claim?.since };
    else if (claim !== undefined) yield { ...claim, gone: undefined };
  }
  for (const claim of known) {
    if (defined.has(claim.cidr)) continue;
    if (!complete || claim.gone !== undefined) yield claim;
    else if (claim.stage === "effective") yield { ...claim, gone: { at: now } };
  }
}

/**
 * Forgets what no object defines anymore after the removal delay, by the wall clock, so a restart does not begin it
 * again. While a source cannot be read its last list stays: a CRD that is deleted takes all its objects with it.
 */
function keptOf(
  claim: Claimed,
  { readable }: SourceNow,
  { consent }: ObjectsNow,
  { removalDelayMs }: DecideSettings,
  now: number,
): Claimed | undefined {
  if (claim.gone === undefined) return claim;
  const { at } = claim.gone;
  if (forgets(consent, claim.cidr, now)) return undefined;
  if (!readable) return { ...claim, gone: {} };
  // A clock that was set back since must not make it last.
  if (at === undefined || at > now) return { ...claim, gone: { at: now } };
  return now - at >= removalDelayMs ? undefined : claim;
}

/** @param own learned CIDRs of ours that are in effect; undefined: the claim is one of ours */
function judged(
  claim: Claimed,
  objects: ObjectsNow,
  settings: DecideSettings,
  own: OwnCIDRs | undefined,
  now: number,
): Claim | undefined {
  const { problem } = claim;
  const { stage, why } = problem === undefined ? verdict(claim, objects, settings, own) : refused(problem);
  // What no object defines and nothing lets take effect is over.
  if (stage !== "effective" && claim.gone?.at !== undefined) return undefined;
  return { ...claim, stage, why, since: stage === "effective" ? (claim.since ?? now) : undefined };
}

type Verdict = Pick<Claim, "stage" | "why">;

const EFFECTIVE: Verdict = { stage: "effective", why: undefined };

function verdict(
  claim: LearnedCIDR,
  { serviceCIDRs, consent }: ObjectsNow,
  { authority }: DecideSettings,
  own: OwnCIDRs | undefined,
): Verdict {
  const met = serviceCIDRs.find((one) => overlap(one, claim.cidr));
  if (met !== undefined) return refused(`overlaps the service CIDR ${met}, which has no pod addresses`);
  const ruled = byAuthority(claim, authority(claim), own);
  if (ruled.stage === "effective" || own === undefined) return ruled;
  return accepts(consent, claim) ? EFFECTIVE : ruled;
}

function byAuthority(claim: LearnedCIDR, ruling: Ruling, own: OwnCIDRs | undefined): Verdict {
  if (ruling.kind === "refused") return refused(ruling.why);
  if (ruling.kind === "believed" || own === undefined) return EFFECTIVE;
  if (ruling.kind === "inside") return held(claim, `${ruling.around.cidr} (${ruling.around.field})`);
  const around = own.around(claim.cidr).at(-1);
  return around === undefined ? EFFECTIVE : held(claim, `${around.cidr} (${around.objects.join(", ")})`);
}

function refused(why: string): Verdict {
  return { stage: "refused", why };
}

function held({ cidr }: LearnedCIDR, ours: string): Verdict {
  return {
    stage: "held",
    why: `lies in ${ours}, which is ours; fairlead ownership --accept ${cidr} lets it take effect`,
  };
}

/** Learned CIDRs of ours that are in effect, with the objects that define them. */
type OwnCIDRs = PrefixMap<Pick<Claim, "cidr" | "objects">>;

function ownOf(claims: Iterable<Claim>): OwnCIDRs {
  let own: OwnCIDRs = PrefixMap.empty();
  for (const { cidr, stage, objects } of claims) {
    if (stage !== "effective") continue;
    own = own.with(cidr, { cidr, objects: [...(own.get(cidr)?.objects ?? []), ...objects] });
  }
  return own;
}

function sameOr(before: Claim | undefined, after: Claim): Claim {
  const same =
    before !== undefined &&
    before.stage === after.stage &&
    before.why === after.why &&
    before.since === after.since &&
    before.gone?.at === after.gone?.at &&
    (before.gone === undefined) === (after.gone === undefined) &&
    before.objects.length === after.objects.length &&
    before.objects.every((object, at) => object === after.objects[at]);
  return same ? before : after;
}

import { overlap, PrefixMap } from "@fairlead/base";
import { Authority, type AuthoritySettings } from "./authority.ts";
import { type Claim, claimKey } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { Acceptance } from "./consent.ts";

/** Whether an operator accepted what an object says. An answer that changes needs `judgeAll`. */
export type Accepts = (claim: Pick<Claim, "side" | "source" | "cidr">) => Acceptance | undefined;

interface DefinedCIDR {
  readonly cidr: string;
}

interface OwnCIDR extends DefinedCIDR {
  /** `IPPool/default` */
  readonly objects: readonly string[];
}

type Verdict = Pick<Claim, "stage" | "why">;

const LEGACY = "it was in effect before the object fairlead-networks was asked, and stays so until that exists";
const EFFECTIVE: Verdict = { stage: "effective", why: undefined };

/**
 * Which learned CIDRs take effect: a function of what objects define now, the configuration and what is accepted, never
 * of the order in which they came. Looks at what changed, and at what lies in a CIDR of ours that came or went.
 */
export class Verdicts {
  readonly #claims: ClaimTable;
  readonly #authority: Authority;
  readonly #accepts: Accepts;
  readonly #now: () => number;
  readonly #dirty = new Set<string>();
  /** CIDRs that other networks' objects define; undefined: they changed since it was asked, which is seldom. */
  #theirs: PrefixMap<DefinedCIDR> | undefined;
  /** Learned CIDRs of ours that are in effect. */
  #own: PrefixMap<OwnCIDR> = PrefixMap.empty();
  #serviceCIDRs: readonly string[] = [];

  /** @param now milliseconds since the epoch */
  constructor(claims: ClaimTable, settings: AuthoritySettings, accepts: Accepts, now: () => number) {
    this.#claims = claims;
    this.#authority = new Authority(settings);
    this.#accepts = accepts;
    this.#now = now;
    for (const claim of claims.all()) this.#moved(undefined, claim);
    claims.follow((before, after) => this.#moved(before, after));
  }

  /** @param cidrs canonical */
  setServiceCIDRs(cidrs: readonly string[]): void {
    if (cidrs.join() === this.#serviceCIDRs.join()) return;
    this.#serviceCIDRs = cidrs;
    this.judgeAll();
  }

  /** Something that all verdicts depend on changed. */
  judgeAll(): void {
    for (const claim of this.#claims.all()) this.#ask(claim);
  }

  /** Decides about what changed: ours first, since theirs depends on it. */
  *settle(): Generator<void, void> {
    for (const side of ["own", "excluded"] as const) {
      for (const key of [...this.#dirty].filter((one) => one.startsWith(`${side} `))) {
        this.#dirty.delete(key);
        const claim = this.#claims.byKey(key);
        if (claim !== undefined && claim.unusable !== true) this.#judge(claim);
        yield;
      }
    }
  }

  #judge(claim: Claim): void {
    const { stage, why } = this.#verdict(claim);
    // What no object defines and nothing lets take effect is over.
    if (stage !== "effective" && claim.gone?.at !== undefined) this.#claims.drop(claim);
    else if (stage !== claim.stage || why !== claim.why || (stage === "effective" && claim.since === undefined)) {
      const since = stage === "effective" ? (claim.since ?? this.#now()) : undefined;
      this.#claims.put({ ...claim, stage, why, since });
    }
    if (claim.side === "own") this.#setOwn(claim.cidr);
  }

  #verdict(claim: Claim): Verdict {
    const met = this.#serviceCIDRs.find((one) => overlap(one, claim.cidr));
    if (met !== undefined) return refused(`overlaps the service CIDR ${met}, which has no pod addresses`);
    const verdict = this.#byAuthority(claim);
    if (verdict.stage === "effective" || claim.side === "own") return verdict;
    const acceptance = this.#accepts(claim);
    if (acceptance === undefined) return verdict;
    return acceptance === "accepted" ? EFFECTIVE : { stage: "effective", why: `${verdict.why}; ${LEGACY}` };
  }

  #byAuthority(claim: Claim): Verdict {
    const word = this.#authority.on(claim);
    if (word.kind === "refused") return refused(word.why);
    if (word.kind === "believed" || claim.side === "own") return EFFECTIVE;
    if (word.kind === "inside") return held(claim, `${word.around.cidr} (${word.around.field})`);
    const around = this.#own.around(claim.cidr).at(-1);
    return around === undefined ? EFFECTIVE : held(claim, `${around.cidr} (${around.objects.join(", ")})`);
  }

  #moved(before: Claim | undefined, after: Claim | undefined): void {
    const claim = after ?? before;
    if (claim === undefined || claim.unusable === true) return;
    if (before === undefined || after === undefined) {
      if (claim.side === "excluded") this.#theirs = undefined;
      this.#ask(claim);
    }
    if (claim.side === "own") this.#setOwn(claim.cidr);
  }

  /** What lies in a CIDR of ours that came, went or has other objects is decided anew. */
  #setOwn(cidr: string): void {
    const objects = this.#claims
      .at(cidr)
      .filter(({ side, stage }) => side === "own" && stage === "effective")
      .flatMap((one) => one.objects);
    const before = this.#own.get(cidr);
    if ((before?.objects.join() ?? "") === objects.join()) return;
    this.#own = objects.length === 0 ? this.#own.without(cidr) : this.#own.with(cidr, { cidr, objects });
    this.#theirs ??= this.#definedByOthers();
    for (const inside of this.#theirs.within(cidr)) for (const claim of this.#claims.at(inside.cidr)) this.#ask(claim);
  }

  #definedByOthers(): PrefixMap<DefinedCIDR> {
    let defined = PrefixMap.empty<DefinedCIDR>();
    for (const { side, cidr, unusable } of this.#claims.all()) {
      if (side === "excluded" && unusable !== true) defined = defined.with(cidr, { cidr });
    }
    return defined;
  }

  #ask(claim: Claim): void {
    this.#dirty.add(claimKey(claim));
  }
}

function refused(why: string): Verdict {
  return { stage: "refused", why };
}

function held({ cidr }: Claim, ours: string): Verdict {
  return {
    stage: "held",
    why: `lies in ${ours}, which is ours; fairlead ownership --accept ${cidr} lets it take effect`,
  };
}

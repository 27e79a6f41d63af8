import { containsCIDR, familyOf, toEnd } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Claim } from "../src/decide/claim.ts";
import { ClaimTable } from "../src/decide/claim-table.ts";
import { Conflicts } from "../src/decide/conflicts.ts";
import { CountingCIDRs } from "../src/decide/counting.ts";
import { Verdicts } from "../src/decide/verdicts.ts";
import type { StaticCIDRs } from "../src/decide/written.ts";

/** What is kept up with single changes is what a look at everything gives. */

const cidr = fc.constantFrom(
  "10.0.0.0/8",
  "10.16.0.0/16",
  "10.16.0.0/17",
  "10.16.128.0/17",
  "10.16.1.0/24",
  "10.144.0.0/15",
  "10.144.0.0/16",
  "10.144.0.0/17",
  "10.144.128.0/17",
  "fd00::/64",
  "fd00::/65",
);
const written: fc.Arbitrary<StaticCIDRs> = fc.record({
  own: fc.uniqueArray(cidr, { maxLength: 2 }),
  excluded: fc.uniqueArray(cidr, { maxLength: 2 }),
});
const claim: fc.Arbitrary<Claim> = fc.record({
  side: fc.constantFrom("own" as const, "excluded" as const),
  source: fc.constantFrom("a", "b"),
  cidr,
  objects: fc.constant(["Subnet/one"]),
  stage: fc.constantFrom("effective" as const, "effective" as const, "held" as const),
});
/** In how many parts the changes are taken in, and whether each puts a claim or drops it. */
const changes = fc.array(fc.tuple(claim, fc.boolean(), fc.boolean()), { maxLength: 25 });

function change(claims: ClaimTable, one: Claim, there: boolean): void {
  if (there) claims.put(one);
  else claims.drop(one);
}

test("the CIDRs that count, the lists of both sides, their numbers and the conflicts", () => {
  fc.assert(
    fc.property(written, changes, (statics, all) => {
      const claims = new ClaimTable();
      const counting = new CountingCIDRs(claims, statics);
      const conflicts = new Conflicts(claims, statics);
      const takeIn = () => {
        toEnd(counting.update());
        toEnd(conflicts.update(counting.takeChanged()));
      };
      takeIn();
      for (const [one, there, pause] of all) {
        change(claims, one, there);
        if (pause) takeIn();
      }
      takeIn();
      const effective = [...claims.all()].filter(({ stage }) => stage === "effective");
      expect(sidesOf(counting)).toEqual(plainSides(statics, effective));
      expect(new Set(counting.clusterCIDRs)).toEqual(
        new Set([...statics.own, ...effective.filter(({ side }) => side === "own").map((one) => one.cidr)]),
      );
      const theirs = effective.filter(({ side }) => side === "excluded");
      for (const source of ["a", "b"]) {
        for (const family of ["IPv4", "IPv6"] as const) {
          const number = theirs.filter((one) => one.source === source && familyOf(one.cidr) === family).length;
          expect(counting.counts.get(source)?.[family] ?? 0).toBe(number);
        }
      }
      expect(new Set(conflicts.all.map((one) => JSON.stringify(one)))).toEqual(plainConflicts(statics, effective));
      expect(conflicts.all).toHaveLength(plainConflicts(statics, effective).size);
    }),
    { numRuns: runs(1_000) },
  );
});

test("what becomes of each claim, whenever what is there is looked at", () => {
  const serviceCIDRs = fc.constantFrom([], ["10.96.0.0/12"], ["10.16.0.0/20"]);
  const within = fc.uniqueArray(cidr, { minLength: 1, maxLength: 2 });
  const filters = fc.option(fc.record({ a: within }), { nil: {} });
  const accepted = fc.uniqueArray(cidr, { maxLength: 2 });
  fc.assert(
    fc.property(written, filters, changes, serviceCIDRs, accepted, (statics, lists, all, cidrs, then) => {
      const settings = { written: statics, within: new Map(Object.entries(lists)), sides: SIDES };
      const verdictsOf = (claims: ClaimTable, list: () => readonly string[]) =>
        new Verdicts(
          claims,
          settings,
          (one) => (list().includes(one.cidr) ? "accepted" : undefined),
          () => 0,
        );
      const claims = new ClaimTable();
      let now: readonly string[] = [];
      const verdicts = verdictsOf(claims, () => now);
      for (const [one, there, pause] of all) {
        // A source has one side, and a claim changes its stage by its verdict only.
        const side = SIDES.get(one.source) ?? "own";
        if (!there || claims.get({ ...one, side }) === undefined)
          change(claims, { ...one, side, stage: "pending" }, there);
        if (pause) toEnd(verdicts.settle());
      }
      verdicts.setServiceCIDRs(cidrs);
      now = then;
      verdicts.judgeAll();
      toEnd(verdicts.settle());

      const fresh = new ClaimTable();
      for (const one of [...claims.all()].reverse()) fresh.put({ ...one, stage: "pending", why: undefined });
      const others = verdictsOf(fresh, () => then);
      others.setServiceCIDRs(cidrs);
      toEnd(others.settle());
      expect(stages(claims)).toEqual(stages(fresh));
    }),
    { numRuns: runs(1_000) },
  );
});

const SIDES = new Map([
  ["a", "excluded" as const],
  ["b", "own" as const],
]);

function stages(claims: ClaimTable): readonly string[] {
  return [...claims.all()].map(({ source, cidr: text, stage, why }) => `${source} ${text} ${stage} ${why}`).sort();
}

function sidesOf({ sides }: CountingCIDRs) {
  return { own: sides.all("own").toSorted(), excluded: sides.all("excluded").toSorted() };
}

/** What was written wins over what was learned, then ours over theirs. */
function plainSides({ own, excluded }: StaticCIDRs, effective: readonly Claim[]) {
  const learned = (side: string) => effective.filter((one) => one.side === side).map((one) => one.cidr);
  const besides = own.filter((one) => !excluded.some((wide) => containsCIDR(wide, one)));
  const ours = new Set([...besides, ...learned("own").filter((one) => !excluded.includes(one))]);
  const theirs = new Set([...excluded, ...learned("excluded").filter((one) => !ours.has(one))]);
  return { own: [...ours].sort(), excluded: [...theirs].sort() };
}

function plainConflicts({ own, excluded }: StaticCIDRs, effective: readonly Claim[]): ReadonlySet<string> {
  const entries = [
    ...own.map((one) => ({ cidr: one, side: "own" as const, learned: false })),
    ...excluded.map((one) => ({ cidr: one, side: "excluded" as const, learned: false })),
    ...effective.map((one) => ({ cidr: one.cidr, side: one.side, learned: true })),
  ];
  const length = (text: string) => Number(text.split("/")[1]);
  const found = entries.flatMap((inner) => {
    const around = entries
      .filter((outer) => outer.side !== inner.side && (outer.learned || inner.learned))
      .filter((outer) => containsCIDR(outer.cidr, inner.cidr))
      .filter((outer) => outer.cidr !== inner.cidr || inner.side === "excluded")
      .sort((a, b) => length(b.cidr) - length(a.cidr));
    return around[0] === undefined ? [] : [{ cidr: inner.cidr, side: inner.side, within: around[0].cidr }];
  });
  // A CIDR that was written and learned has one conflict: with the most specific one around it.
  const best = new Map<string, (typeof found)[number]>();
  for (const one of found) {
    const known = best.get(`${one.side} ${one.cidr}`);
    if (known === undefined || length(one.within) > length(known.within)) best.set(`${one.side} ${one.cidr}`, one);
  }
  return new Set([...best.values()].map((one) => JSON.stringify(one)));
}

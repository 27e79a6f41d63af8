import { containsCIDR, toEnd } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { authority, type LearnedCIDR } from "../src/authority.ts";
import { type Claims, decide } from "../src/decide.ts";
import { type StaticCIDRs, writtenSides } from "../src/settings.ts";
import { countingCIDRs, NO_CIDRS } from "../src/sides.ts";
import { others, ours, theirs } from "./setup.ts";

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
const SOURCES = { own: [ours], excluded: [theirs, others] };
const IDS = [ours.id, theirs.id, others.id];

test("sides and conflicts are those of a look at all pairs, and the same values while nothing changes", () => {
  const side = fc.constantFrom("own" as const, "excluded" as const);
  const learned = fc.array(fc.record({ side, source: fc.constantFrom("a", "b"), cidr }), { maxLength: 12 });
  fc.assert(
    fc.property(written, fc.array(learned, { minLength: 1, maxLength: 3 }), (lists, decisions) => {
      const statics = { lists, sides: writtenSides({ written: lists, sources: SOURCES }) };
      let before = NO_CIDRS;
      for (const one of decisions) {
        const after = toEnd(countingCIDRs(one, statics, before));
        const sides = { own: after.sides.all("own").toSorted(), excluded: after.sides.all("excluded").toSorted() };
        expect(sides).toEqual(plainSides(lists, one));
        const conflicts = new Set(after.conflicts.map((conflict) => JSON.stringify(conflict)));
        expect(conflicts).toEqual(plainConflicts(lists, one));
        expect(after.conflicts).toHaveLength(conflicts.size);
        const again = toEnd(countingCIDRs(one.toReversed(), statics, after));
        expect(again).toEqual({ ...after, changed: [] });
        expect([again.sides === after.sides, again.clusterCIDRs === after.clusterCIDRs]).toEqual([true, true]);
        before = after;
      }
    }),
    { numRuns: runs(1_000) },
  );
});

test("what becomes of what objects define does not depend on decisions before, nor on an order", () => {
  const objects = fc.array(fc.record({ source: fc.constantFrom(...IDS), cidr }), { maxLength: 10 });
  const moment = fc.record({
    objects,
    serviceCIDRs: fc.constantFrom([], ["10.96.0.0/12"], ["10.16.0.0/20"]),
    accepted: fc.array(fc.record({ cidr }), { maxLength: 2 }),
  });
  const within = fc.option(fc.uniqueArray(cidr, { minLength: 1, maxLength: 2 }), { nil: undefined });
  fc.assert(
    fc.property(written, within, fc.array(moment, { minLength: 1, maxLength: 5 }), (lists, filter, moments) => {
      const filters = new Map(filter && [[theirs.id, filter]]);
      const rulings = authority({ written: lists, sources: SOURCES, within: filters });
      const decided = (one: (typeof moments)[number], before: Claims) => {
        const consent = { read: { accepted: one.accepted, forgotten: [], unprotected: [] }, legacy: [] };
        const now = { sources: sourcesOf(one.objects), serviceCIDRs: one.serviceCIDRs, consent };
        return toEnd(decide(now, { authority: rulings, removalDelayMs: 0 }, before, 0));
      };
      let claims: Claims = new Map();
      for (const one of moments) claims = decided(one, claims);
      const last = moments.at(-1) ?? { objects: [], serviceCIDRs: [], accepted: [] };
      const fresh = decided({ ...last, objects: last.objects.toReversed() }, new Map());
      const inOrder = (found: Claims) => [...found].sort(([a], [b]) => (a < b ? -1 : 1));
      expect(inOrder(claims)).toEqual(inOrder(fresh));
      // A claim that is as it was is the same object: what changed is found by that.
      expect([...decided(last, claims).values()].every((claim, at) => claim === [...claims.values()][at])).toBe(true);
    }),
    { numRuns: runs(1_000) },
  );
});

function sourcesOf(objects: readonly { readonly source: string; readonly cidr: string }[]) {
  return (["own", "excluded"] as const).flatMap((side) =>
    SOURCES[side].map(({ id }) => {
      const cidrs = objects.filter(({ source }) => source === id);
      const defined = new Map(cidrs.map((one) => [one.cidr, { objects: [`Subnet/${one.cidr}`] }]));
      return { side, id, defined, complete: true, readable: true };
    }),
  );
}

/** What was written wins over what was learned, then ours over theirs. */
function plainSides({ own, excluded }: StaticCIDRs, effective: readonly LearnedCIDR[]) {
  const learned = (side: string) => effective.filter((one) => one.side === side).map((one) => one.cidr);
  const besides = own.filter((one) => !excluded.some((wide) => containsCIDR(wide, one)));
  const ours = new Set([...besides, ...learned("own").filter((one) => !excluded.includes(one))]);
  const theirs = new Set([...excluded, ...learned("excluded").filter((one) => !ours.has(one))]);
  return { own: [...ours].sort(), excluded: [...theirs].sort() };
}

function plainConflicts({ own, excluded }: StaticCIDRs, effective: readonly LearnedCIDR[]): ReadonlySet<string> {
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

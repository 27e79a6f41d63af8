import { contains, containsCIDR, toEnd } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { authority, type LearnedCIDR } from "../src/authority.ts";
import { type Claims, decide } from "../src/decide.ts";
import { AddressIndex, type NetworksDecision } from "../src/index.ts";
import { type StaticCIDRs, writtenSides } from "../src/settings.ts";
import { countingCIDRs, NO_CIDRS } from "../src/sides.ts";
import { others, ours, setup, TestServices, theirs } from "./support.ts";

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
        const consent = { read: { accepted: one.accepted, forgotten: [], unprotected: [] } };
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

const REMOVAL_DELAY_MS = 600_000;
const SETTINGS = { settings: { written: { own: ["10.144.0.0/16"], excluded: [] } } };
/** One in each eighth of the network, and one of ours. */
const ADDRESSES = Array.from({ length: 8 }, (_, at) => `10.16.${at * 32 + 1}.1`);
const services = new TestServices({
  ...Object.fromEntries(ADDRESSES.map((address, at) => [`s${at}`, [address]])),
  ours: ["10.144.0.5"],
});

/** The /16 in parts that together are the whole: halves, or one of them in halves again, and so on. */
function parts(cut: readonly boolean[], index = 1, length = 16, third = 0): readonly string[] {
  if (length === 19 || cut[index] !== true) return [`10.16.${third}.0/${length}`];
  const middle = third + (1 << (23 - length));
  return [...parts(cut, 2 * index, length + 1, third), ...parts(cut, 2 * index + 1, length + 1, middle)];
}

const cut = fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }).map((one) => parts(one));

function foreign({ filter }: NetworksDecision): readonly string[] {
  return [...ADDRESSES, "10.144.0.5"].filter((address) => filter.isForeign?.(address));
}

test("subnets that are renamed, split and merged in any order, each within the removal delay: nothing changes hands", () => {
  const pause = fc.nat(30_000);
  fc.assert(
    fc.property(fc.array(cut, { minLength: 2, maxLength: 5 }), fc.infiniteStream(pause), (cuts, pauses) => {
      const { networks, clock, start, next, subnet, noSubnet } = setup(SETTINGS);
      const [first = [], ...others] = cuts;
      for (const cidr of first) subnet(`0 ${cidr}`, cidr);
      start();
      expect(foreign(next(services))).toEqual(ADDRESSES);
      let before = first;
      for (const [at, after] of others.entries()) {
        const events = [
          ...before.map((cidr) => () => noSubnet(`${at} ${cidr}`)),
          ...after.map((cidr) => () => subnet(`${at + 1} ${cidr}`, cidr)),
        ];
        // In no order: the pauses are as good as any others.
        const order = pauses.take(events.length);
        const shuffled = [...order].map((key, index) => ({ key, act: events[index] })).sort((a, b) => a.key - b.key);
        for (const { key, act } of shuffled) {
          act?.();
          clock.advanceNow(key);
          expect(foreign(networks.decide(services))).toEqual(ADDRESSES);
        }
        next(services);
        before = after;
      }
      clock.advanceNow(REMOVAL_DELAY_MS);
      const decision = networks.decide(services);
      expect(decision.excludeCIDRs.toSorted()).toEqual([...before].sort());
      expect(foreign(decision)).toEqual(ADDRESSES);
    }),
    { numRuns: runs(100) },
  );
});

test("what shrunk subnets no longer have is given back when the removal delay is over, and nothing else", () => {
  fc.assert(
    fc.property(cut, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), (all, stays) => {
      const { networks, clock, start, next, subnet, noSubnet } = setup(SETTINGS);
      subnet("whole", "10.16.0.0/16");
      start();
      next(services);
      const left = all.filter((_, at) => stays[at]);
      for (const cidr of left) subnet(cidr, cidr);
      noSubnet("whole");
      expect(foreign(next(services))).toEqual(ADDRESSES);
      clock.advanceNow(REMOVAL_DELAY_MS - 1);
      expect(foreign(networks.decide(services))).toEqual(ADDRESSES);
      clock.advanceNow(1);
      const decision = networks.decide(services);
      const kept = ADDRESSES.filter((address) => left.some((cidr) => containsCIDR(cidr, `${address}/32`)));
      expect(foreign(decision)).toEqual(kept);
      expect(networks.due).toBeUndefined();
    }),
    { numRuns: runs(100) },
  );
});

const address = fc.oneof(
  fc.tuple(fc.constantFrom(0, 1, 255), fc.integer({ min: 0, max: 40 })).map(([c, d]) => `10.0.${c}.${d}`),
  fc.integer({ min: 0, max: 40 }).map((low) => `fd00::${low.toString(16)}`),
);
const service = fc.integer({ min: 0, max: 30 }).map((n): ServiceKey => `default/s${n}`);
const CIDRS = [
  "10.0.0.0/16",
  "10.0.1.0/24",
  "10.0.255.255/32",
  "10.0.0.8/29",
  "0.0.0.0/1",
  "fd00::/124",
  "fd00::1/128",
  "f000::/4",
];

test("after any changes it finds what a look at every service finds", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(service, fc.array(address, { maxLength: 60 })), { maxLength: 80 }), (changes) => {
      const index = new AddressIndex();
      const naive = new Map<ServiceKey, readonly string[]>();
      for (const [key, addresses] of changes) {
        index.set(key, addresses);
        naive.set(key, addresses);
      }
      for (const cidr of CIDRS) {
        const expected = [...naive].filter(([, list]) => list.some((one) => contains(cidr, one))).map(([key]) => key);
        expect([...index.within(cidr)].sort()).toEqual(expected.sort());
      }
    }),
    { numRuns: runs(300) },
  );
});

test("thousands of services at one address come and go", () => {
  const index = new AddressIndex();
  for (let n = 0; n < 3_000; n++) index.set(`default/s${n}`, ["10.0.0.1"]);
  expect(index.within("10.0.0.1/32").size).toBe(3_000);
  for (let n = 0; n < 2_999; n++) index.set(`default/s${n}`, []);
  expect([...index.within("10.0.0.0/8")]).toEqual(["default/s2999"]);
});

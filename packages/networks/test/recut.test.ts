import { containsCIDR } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { NetworksDecision } from "../src/index.ts";
import { TestServices } from "./services.ts";
import { setup } from "./setup.ts";

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

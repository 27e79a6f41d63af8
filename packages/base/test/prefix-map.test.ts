import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressWords, contains, containsCIDR, PrefixMap, prefixLengthOf } from "../src/index.ts";

const MANY = { numRuns: 2_000 };

/** Few bits that are set, so that prefixes nest, touch and repeat. */
const ipv4 = fc
  .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 26, max: 32 }))
  .map(([low, length]) => `10.0.0.${low & (256 - 2 ** (32 - length))}/${length}`);
const ipv6 = fc.constantFrom(
  "fd00::/15",
  "fd00::/16",
  "fd00::/17",
  "fd00:8000::/17",
  "fd00::/31",
  "fd00::/32",
  "fd00:1::/32",
  "fd00::/33",
  "fd00:0:8000::/33",
  "fd00::/64",
  "fd00:0:0:1::/64",
);
const cidr = fc.oneof(ipv4, ipv6);
const change = fc.tuple(fc.boolean(), cidr);
const address = fc.oneof(
  fc.integer({ min: 0, max: 63 }).map((low) => `10.0.0.${low}`),
  fc.constantFrom("fd00::1", "fd00:1::1", "fd00:8000::1", "fd00:0:8000::1", "fd00:0:0:1::1", "fd02::1"),
);

function mapOf(changes: readonly (readonly [boolean, string])[]) {
  let map = PrefixMap.empty<{ readonly cidr: string }>();
  const plain = new Map<string, { readonly cidr: string }>();
  for (const [there, text] of changes) {
    if (there) {
      const value = { cidr: text };
      map = map.with(text, value);
      plain.set(text, value);
    } else {
      map = map.without(text);
      plain.delete(text);
    }
  }
  return { map, plain };
}

describe("after any changes a map of prefixes says what a plain list would", () => {
  test("of single addresses and CIDRs", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), address, cidr, (changes, one, target) => {
        const { map, plain } = mapOf(changes);
        const widestFirst = [...plain.values()].sort((a, b) => prefixLengthOf(a.cidr) - prefixLengthOf(b.cidr));
        expect(map.find(addressWords(one))).toBe(widestFirst.findLast(({ cidr: text }) => contains(text, one)));
        expect(map.get(target)).toBe(plain.get(target));
        expect(map.around(target)).toEqual(widestFirst.filter(({ cidr: text }) => containsCIDR(text, target)));
        const within = [...map.within(target)];
        expect(new Set(within)).toEqual(new Set(widestFirst.filter(({ cidr: text }) => containsCIDR(target, text))));
        expect(new Set(map.values())).toEqual(new Set(plain.values()));
      }),
      MANY,
    );
  });

  test("whether all of a CIDR is in them", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), ipv4), { maxLength: 30 }), ipv4, (changes, target) => {
        const { map, plain } = mapOf(changes);
        const all = Array.from({ length: 256 }, (_, low) => `10.0.0.${low}`).filter((one) => contains(target, one));
        expect(map.covers(target)).toBe(all.every((one) => [...plain.keys()].some((text) => contains(text, one))));
      }),
      MANY,
    );
  });

  test("in one order, whatever the history", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const { map, plain } = mapOf(changes);
        const { map: fresh } = mapOf([...plain.keys()].reverse().map((text) => [true, text]));
        expect([...map.values()].map(({ cidr: text }) => text)).toEqual(
          [...fresh.values()].map(({ cidr: text }) => text),
        );
      }),
    );
  });
});

test("a change leaves the map before it as it was; one that says nothing new gives the same map", () => {
  const wide = PrefixMap.empty<{ readonly name: string }>().with("10.0.0.0/8", { name: "wide" });
  const both = wide.with("10.1.0.0/16", { name: "narrow" });
  const words = addressWords("10.1.2.3");
  expect([wide.find(words)?.name, both.find(words)?.name]).toEqual(["wide", "narrow"]);
  expect(both.without("10.1.0.0/16").find(words)?.name).toBe("wide");
  expect(both.without("10.2.0.0/16")).toBe(both);
});

test("what is no CIDR is refused", () => {
  expect(() => PrefixMap.empty().get("ten")).toThrow(RangeError);
});

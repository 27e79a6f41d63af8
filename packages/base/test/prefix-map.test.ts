import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressWords, contains, containsCIDR, Heap, PrefixMap, prefixLengthOf } from "../src/index.ts";

const MANY = { numRuns: runs(2_000) };

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

describe("regions", () => {
  interface Named {
    readonly cidr: string;
    readonly wanted: boolean;
  }
  const changes = fc.array(fc.tuple(cidr, fc.constantFrom(true, false, undefined)), { maxLength: 30 });
  const isWanted = ({ wanted }: Named) => wanted;

  /** The fewest CIDRs of 10.0.0.0/26, by looking at each address. */
  function naive(wanted: (low: number) => boolean, first = 0, length = 26): readonly string[] {
    const size = 2 ** (32 - length);
    const all = Array.from({ length: size }, (_, at) => wanted(first + at));
    if (all.every((one) => one)) return [`10.0.0.${first}/${length}`];
    if (!all.includes(true)) return [];
    return [...naive(wanted, first, length + 1), ...naive(wanted, first + size / 2, length + 1)];
  }

  test("are where a wanted value decides, after any changes", () => {
    fc.assert(
      fc.property(changes, (list) => {
        let map = PrefixMap.empty<Named>();
        for (const [one, wanted] of list) {
          map = wanted === undefined ? map.without(one) : map.with(one, { cidr: one, wanted });
          const wants = (low: number) => map.find(addressWords(`10.0.0.${low}`))?.wanted === true;
          expect(map.regions("IPv4", isWanted)).toEqual(naive(wants));
        }
        for (const one of map.regions("IPv6", isWanted)) {
          const [first = "", length = ""] = one.split("/");
          expect(map.find(addressWords(first))?.wanted).toBe(true);
          expect(prefixLengthOf(one)).toBe(Number(length));
        }
      }),
      { numRuns: runs(500) },
    );
  });

  test("of IPv6: what is within another one is cut out of it, halves are put together", () => {
    const of = (...cidrs: readonly (readonly [string, boolean])[]) => {
      let map = PrefixMap.empty<Named>();
      for (const [one, wanted] of cidrs) map = map.with(one, { cidr: one, wanted });
      return map.regions("IPv6", isWanted);
    };
    expect(of(["fd00::/64", true], ["fd00:0:0:1::/64", true])).toEqual(["fd00::/63"]);
    expect(of(["fd00::/32", true], ["fd00:0:8000::/34", false])).toEqual(["fd00::/33", "fd00:0:c000::/34"]);
    expect(of(["fd00::/32", false], ["fd00::/33", true], ["fd00:0:8000::/33", true])).toEqual(["fd00::/32"]);
    expect(of(["::/0", true])).toEqual(["::/0"]);
  });
});

test("what is taken away one after the other is sorted, whatever it began with and whatever came in between", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer()),
      fc.array(fc.oneof(fc.integer(), fc.constant("pop" as const))),
      (start, steps) => {
        const ascending = (one: number, other: number) => one - other;
        let left = start.toSorted(ascending);
        const heap = new Heap<number>((one, other) => one < other, left);
        for (const step of steps) {
          if (step === "pop") {
            heap.pop();
            left = left.slice(1);
          } else {
            heap.push(step);
            left = [...left, step].sort(ascending);
          }
          expect([heap.first, heap.size]).toEqual([left[0], left.length]);
        }
      },
    ),
  );
});

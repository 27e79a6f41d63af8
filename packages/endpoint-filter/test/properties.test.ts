import { ADDRESS_BITS, type IPFamily, wordsText } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import { createEndpointFilter, type FilterOptions } from "../src/index.ts";
import { CIDRSides } from "../src/sides.ts";
import { covers, parseCIDR } from "../src/validate.ts";
import { endpointsAt, service } from "./service.ts";

/** Few high bits, and low ones next to where CIDRs begin and end: they nest, touch and hit addresses often. */
const family = fc.constantFrom<IPFamily>("IPv4", "IPv6");

function formatAddress(kind: IPFamily, value: bigint): string {
  const words = Array.from({ length: ADDRESS_BITS[kind] / 32 }, (_, at) =>
    Number((value >> BigInt(32 * at)) & 0xffffffffn),
  );
  return wordsText(words.reverse());
}

function addressOf(six: boolean): fc.Arbitrary<string> {
  const width = six ? 128 : 32;
  return fc.tuple(fc.bigInt(0n, 63n), fc.bigInt(-4n, 15n)).map(([high, low]) => {
    return formatAddress(six ? "IPv6" : "IPv4", BigInt.asUintN(width, (high << BigInt(width - 6)) + low));
  });
}

const address = fc.boolean().chain(addressOf);

const cidr = fc.tuple(family, fc.bigInt(0n, 63n), fc.integer({ min: 1, max: 7 })).map(([kind, high, length]) => {
  const written = `${formatAddress(kind, high << BigInt(ADDRESS_BITS[kind] - 6))}/${length}`;
  return parseCIDR(written)?.network.text ?? "";
});

const cidrs = fc.array(cidr, { maxLength: 12 });

function naive(list: readonly string[], text: string): string | undefined {
  const parsed = ipaddr.parse(text);
  return list
    .filter((entry) => {
      const range = ipaddr.parseCIDR(entry);
      return parsed.kind() === range[0].kind() && parsed.match(range);
    })
    .sort((a, b) => Number(b.split("/")[1]) - Number(a.split("/")[1]))[0];
}

const options = (excludeCIDRs: readonly string[], mixedServices: FilterOptions["mixedServices"] = "own-endpoints") => ({
  excludeCIDRs,
  mixedServices,
  excludedFrontends: "all" as const,
  ownershipAnnotation: true,
});

test("excluded clients are those whose most specific CIDR is an excluded one, in disjoint CIDRs", () => {
  fc.assert(
    fc.property(cidrs, cidrs, address, (excludeCIDRs, ownCIDRs, text) => {
      const filter = createEndpointFilter({
        ...options(excludeCIDRs),
        excludedFrontends: "excluded-clients",
        ownCIDRs,
      });
      const kind = text.includes(":") ? "IPv6" : "IPv4";
      const holding = (filter.excludedClients?.(kind) ?? []).filter((one) => naive([one], text) !== undefined);
      const most = naive([...excludeCIDRs, ...ownCIDRs], text) ?? "";
      expect(holding).toHaveLength(excludeCIDRs.includes(most) ? 1 : 0);
    }),
  );
});

describe("sides", () => {
  test("finds the most specific CIDR, as a naive search does", () => {
    fc.assert(
      fc.property(cidrs, address, (list, text) => {
        expect(CIDRSides.of(list).excluding(text)).toBe(naive(list, text));
      }),
      { numRuns: runs(700) },
    );
  });

  test("covers says what counting addresses says", () => {
    const small = fc.tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 28, max: 32 })).map(([low, length]) => {
      return parseCIDR(`10.0.0.${low}/${length}`)?.network;
    });
    fc.assert(
      fc.property(fc.array(small, { maxLength: 6 }), small, (list, target) => {
        const networks = list.filter((entry) => entry !== undefined);
        if (target === undefined) return;
        let every = true;
        for (let value = target.first; value <= target.last; value++) {
          every &&= networks.some(({ first, last }) => first <= value && value <= last);
        }
        expect(covers(networks, target)).toBe(every);
      }),
    );
  });
});

test("sides after any changes are those of a fresh start", () => {
  const side = fc.constantFrom("excluded" as const, "own" as const, undefined);
  fc.assert(
    fc.property(fc.array(fc.tuple(cidr, side), { maxLength: 30 }), address, (changes, text) => {
      let sides = CIDRSides.none;
      for (const [one, to] of changes) sides = sides.with(one, to);
      const last = [...new Map(changes)];
      const on = (wanted: "excluded" | "own") => last.flatMap(([one, to]) => (to === wanted ? [one] : []));
      const fresh = CIDRSides.of(on("excluded"), on("own"));
      expect(sides.excluding(text)).toBe(fresh.excluding(text));
      expect(sides.all("excluded")).toEqual(fresh.all("excluded"));
      expect(sides.all("own")).toEqual(fresh.all("own"));
      expect(sides.regions("IPv4")).toEqual(fresh.regions("IPv4"));
      expect(sides.regions("IPv6")).toEqual(fresh.regions("IPv6"));
    }),
    { numRuns: runs(350) },
  );
});

describe("filter", () => {
  const addresses = fc.boolean().chain((six) => fc.array(addressOf(six), { minLength: 1, maxLength: 8 }));

  test("ours, mixed, foreign as a naive count says; no excluded address is ever kept", () => {
    fc.assert(
      fc.property(cidrs, addresses, (list, endpoints) => {
        const decision = createEndpointFilter(options(list)).decide(
          service(),
          "IPv4",
          endpointsAt(endpoints),
          undefined,
        );
        const inside = endpoints.filter((text) => naive(list, text) !== undefined);
        const expected = inside.length === 0 ? "ours" : inside.length === endpoints.length ? "foreign" : "mixed";
        expect(decision.ownership).toBe(expected);
        const kept =
          decision.frontends === "none" ? [] : endpoints.filter((address) => decision.excludes?.({ address }) !== true);
        expect(kept).toEqual(endpoints.filter((text) => !inside.includes(text)));
        expect(decision.excludedEndpoints).toBe(new Set(inside).size);
        expect(decision.ownEndpoints + decision.excludedEndpoints).toBe(new Set(endpoints).size);
        expect(decision.decidingCIDRs).toEqual([...new Set(inside.map((text) => naive(list, text)))].sort());
      }),
      { numRuns: runs(350) },
    );
  });

  test("neither the order of endpoints and CIDRs nor repetition changes a decision", () => {
    const shuffled = <Value>(list: readonly Value[]) => fc.shuffledSubarray([...list, ...list], { minLength: 0 });
    const policies = fc.constantFrom("own-endpoints", "skip", "all");
    fc.assert(
      fc.property(
        fc
          .tuple(cidrs, addresses)
          .chain(([list, endpoints]) =>
            fc.tuple(fc.constant(list), shuffled(list), fc.constant(endpoints), shuffled(endpoints)),
          ),
        policies,
        ([list, otherList, endpoints, otherEndpoints], policy) => {
          const one = createEndpointFilter(options(list, policy));
          const other = createEndpointFilter(options([...list, ...otherList].reverse(), policy));
          const { excludes: a, ...first } = one.decide(service(), "IPv4", endpointsAt(endpoints), undefined);
          const again = [...otherEndpoints, ...endpoints].reverse();
          const { excludes: b, ...second } = other.decide(service(), "IPv4", endpointsAt(again), undefined);
          expect(second).toEqual(first);
          expect(endpoints.map((address) => b?.({ address }))).toEqual(endpoints.map((address) => a?.({ address })));
        },
      ),
    );
  });
});

import type { NftTable } from "@fairlead/netfilter/nft";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Exploration, explore } from "../../src/index.ts";
import { HOST, packet } from "../rule-set.ts";
import { tableOf } from "./tables.ts";

/** A draw of three numbers, some of which lead somewhere. */
type Draw = readonly (string | undefined)[];

const drawOf = (name: string) => `numgen random mod 3 vmap @${name}`;

const mapOf = (name: string, draw: Draw) => {
  const elements = draw.flatMap((to, number) => (to === undefined ? [] : `${number} : ${to}`)).join(", ");
  return `map ${name} {\ntype integer : verdict\n${elements && `elements = { ${elements} }`}\n}`;
};

/** What draws lead to, what the rule does before it draws, and how often it stands there. */
interface Drawing {
  readonly draw: Draw;
  readonly before: "nothing" | "a mark" | "an unknown match";
  readonly times: number;
}

const BEFORE = {
  nothing: "",
  "a mark": "meta mark set meta mark ^ 0x1 ",
  "an unknown match": "@nh,8,8 0x40 ",
} as const;

function drawings(
  chains: readonly string[],
  maxLength: number,
  befores: readonly Drawing["before"][],
): fc.Arbitrary<readonly Drawing[]> {
  const calls = chains.flatMap((chain) => [`jump ${chain}`, `goto ${chain}`]);
  const end = fc.constantFrom("accept", "drop", "return", "continue", ...calls);
  const place = fc.option(end, { nil: undefined });
  return fc.array(
    fc.record({
      draw: fc.array(place, { minLength: 3, maxLength: 3 }),
      before: fc.constantFrom(...befores),
      times: fc.integer({ min: 1, max: 2 }),
    }),
    { maxLength },
  );
}

const table = fc
  .oneof(
    fc.record({
      "forward filter": drawings(["a"], 2, ["nothing", "a mark"]),
      a: drawings([], 1, ["nothing", "a mark"]),
    }),
    fc.record({ "forward filter": drawings([], 2, ["nothing", "an unknown match"]) }),
  )
  .map((chains): NftTable => {
    const nameOf = (chain: string, at: number) => `${chain.replace(" ", "-")}-${at}`;
    const sets = Object.entries(chains).flatMap(([chain, all]) =>
      all.map(({ draw }, at) => mapOf(nameOf(chain, at), draw)),
    );
    const rules = Object.entries(chains).map(([chain, all]) => [
      chain,
      all.flatMap(({ before, times }, at) => new Array<string>(times).fill(BEFORE[before] + drawOf(nameOf(chain, at)))),
    ]);
    return tableOf(Object.fromEntries(rules), sets);
  });

/** The share of each end, whatever rules led there. */
function shares({ outcomes, undecided }: Exploration): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  const ends = [
    ...outcomes.map(({ probability, visits: _, assumed = [], ...end }) => ({
      probability,
      end: { ...end, assumed: assumed.map(({ chain, index, matched }) => [chain, index, matched]) },
    })),
    ...undecided.map(({ probability, problem }) => ({ probability, end: problem.message })),
  ];
  for (const { probability, end } of ends) {
    const key = JSON.stringify(end);
    sums.set(key, (sums.get(key) ?? 0) + probability);
  }
  return sums;
}

describe("merged ways", () => {
  test("of any draws end where the single ones do, with the same shares", () => {
    fc.assert(
      fc.property(table, (nft) => {
        const rules = { nftables: [nft] };
        const single = shares(explore(rules, packet(), HOST));
        const merged = shares(explore(rules, packet(), HOST, { merged: true }));
        expect([...merged.keys()].toSorted()).toEqual([...single.keys()].toSorted());
        for (const [end, share] of merged) expect(share).toBeCloseTo(single.get(end) ?? 0, 10);
      }),
      { numRuns: runs(300) },
    );
  });

  test("are as many as there are ends, however often is drawn", () => {
    const draws = new Array<string>(8).fill(drawOf("ends"));
    const rules = { nftables: [tableOf({ "forward filter": draws }, [mapOf("ends", ["accept", "drop"])])] };
    expect(explore(rules, packet(), HOST).outcomes).toHaveLength(17);
    expect(explore(rules, packet(), HOST, { merged: true }).outcomes).toHaveLength(3);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  canonicalRule,
  type IPFamily,
  type Match,
  parseList,
  parseRestore,
  parseSave,
  renderCommand,
  renderRule,
  renderRuleSet,
  renderTable,
  renderTables,
  ruleEquals,
} from "../src/index.ts";
import { plainComment, rules, wordName } from "./arbitraries.ts";
import { goldenTexts } from "./golden.ts";

const FAMILIES: IPFamily[] = ["IPv4", "IPv6"];

/** A kind that is not in here does not compile. */
const MATCHES: Readonly<Record<Exclude<Match["kind"], "unknown" | "unreadable">, true>> = {
  addrtype: true,
  comment: true,
  conntrack: true,
  ipvs: true,
  mark: true,
  nfacct: true,
  physdev: true,
  recent: true,
  sctp: true,
  set: true,
  statistic: true,
  tcp: true,
  udp: true,
};

describe.each(FAMILIES)("%s", (family) => {
  const anyRule = fc.oneof(
    ...(["filter", "nat"] as const).map((table) =>
      rules({ family, table, chains: ["KUBE-A", "cali-b"], objects: true, comment: plainComment }),
    ),
  );

  test("rules with every kind of match are drawn", () => {
    const drawn = fc.sample(anyRule, { numRuns: 2_000, seed: 1 });
    const kinds = new Set<string>(drawn.flatMap(({ matches }) => matches.map(({ kind }) => kind)));
    expect(Object.keys(MATCHES).filter((kind) => !kinds.has(kind))).toEqual([]);
  });

  test("a rule reads back as itself from restore, save and list text", () => {
    fc.assert(
      fc.property(anyRule, wordName, (rule, chain) => {
        const append = renderCommand({ kind: "append", chain, rule });
        expect(parseRestore(`*nat\n${append}\nCOMMIT\n`, { family })).toEqual([
          { table: "nat", commands: [{ kind: "append", chain, rule }] },
        ]);
        const saved = parseSave(`*nat\n:${chain} - [0:0]\n[3:4] ${append}\nCOMMIT\n`, { family });
        expect(saved.get("nat")?.chains.get(chain)?.rules).toEqual([rule]);
        expect(parseList(append, "nat", { family }).chains.get(chain)?.rules).toEqual([rule]);
      }),
    );
  });

  test("a canonical rule is its own canonical form", () => {
    fc.assert(
      fc.property(anyRule, (rule) => {
        expect(canonicalRule(rule, family)).toEqual(rule);
        expect(ruleEquals(rule, structuredClone(rule))).toBe(true);
      }),
    );
  });

  test("rules are equal exactly when their texts are", () => {
    fc.assert(
      fc.property(anyRule, anyRule, (a, b) => {
        expect(ruleEquals(a, b)).toBe(renderRule(a) === renderRule(b));
      }),
    );
  });

  test("commands of every kind come back in order, however the text is cut", () => {
    const command = fc.oneof(
      fc.record({ kind: fc.constantFrom("append", "delete"), chain: wordName, rule: anyRule }),
      fc.record({
        kind: fc.constant("insert"),
        chain: wordName,
        position: fc.integer({ min: 1, max: 999 }),
        rule: anyRule,
      }),
      fc.record({ kind: fc.constantFrom("flush", "delete-chain", "chain"), chain: wordName }),
      fc.record({ kind: fc.constant("chain"), chain: wordName, policy: fc.constantFrom("ACCEPT", "DROP") }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 6 }), fc.integer({ min: 1, max: 40 }), (commands, size) => {
        const text = [...renderTable({ table: "nat", commands })].join("");
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
          text.slice(at * size, (at + 1) * size),
        );
        expect(parseRestore(pieces, { family })).toEqual([{ table: "nat", commands }]);
      }),
    );
  });
});

const golden = goldenTexts();

test("the golden files are there", () => {
  expect(golden.length).toBeGreaterThanOrEqual(70);
});

describe.each(golden)("$name", ({ family, text }) => {
  const withoutCounters = text.replaceAll(/\[\d+:\d+\]$/gm, "[0:0]");

  test("parses and renders to itself", () => {
    expect([...renderRuleSet(parseSave(text, { family }))].join("")).toBe(withoutCounters);
  });

  test("is understood without rest", () => {
    expect(JSON.stringify([...parseSave(text, { family }).values()].map(({ chains }) => [...chains]))).not.toContain(
      '"unknown"',
    );
  });

  test("reads as a restore payload of the same commands", () => {
    expect([...renderTables(parseRestore(text, { family }))].join("")).toBe(withoutCounters);
  });
});

import { expectReadmeExample } from "@fairlead/tooling/readme";
import { describe, expect, test } from "vitest";
import { compareRuleSets, parseSave, type RuleSet } from "../src/index.ts";
import * as any from "../src/sha256/any.ts";
import * as node from "../src/sha256/node.ts";
import { goldenTexts } from "./golden.ts";

function ruleSet(...rules: string[]): RuleSet {
  return parseSave(
    `*filter\n:INPUT ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n${rules.map((rule) => `-A A ${rule}\n`).join("")}COMMIT\n`,
  );
}

function kinds(a: RuleSet, b: RuleSet): string[] {
  return compareRuleSets(a, b).map(({ kind }) => kind);
}

describe("golden files", () => {
  test.each(goldenTexts())("$name equals itself in any order of chains", ({ family, text }) => {
    const parsed = parseSave(text, { family });
    const reversed: RuleSet = new Map(
      [...parsed].reverse().map(([table, state]) => [table, { table, chains: new Map([...state.chains].reverse()) }]),
    );
    expect(compareRuleSets(parsed, reversed)).toEqual([]);
  });
});

describe("order that means nothing", () => {
  test.each([
    ["destinations", "-d 10.0.0.1/32 -j B", "-d 10.0.0.2/32 -j DROP"],
    ["sources", "-s 10.0.0.0/24 -j B", "-s 10.0.1.0/24 -j DROP"],
    ["a negated source", "-s 10.0.0.0/24 -j B", "! -s 10.0.0.0/8 -j DROP"],
    ["protocols", "-p tcp -j B", "-p udp -j DROP"],
    ["a negated protocol", "-p tcp -j B", "! -p tcp -j DROP"],
    ["interfaces", "-i eth0 -j B", "-i eth1 -j DROP"],
    ["ports", "-p tcp -m tcp --dport 80 -j B", "-p tcp -m tcp --dport 81:90 -j DROP"],
    ["a negated port", "-p tcp -m tcp --dport 80 -j B", "-p tcp -m tcp ! --dport 80:90 -j DROP"],
    ["equal targets", "-s 10.0.0.0/8 -j B", "-d 10.0.0.0/8 -j B"],
  ])("%s", (_, first, second) => expect(kinds(ruleSet(first, second), ruleSet(second, first))).toEqual([]));
});

describe("order that matters", () => {
  test.each([
    ["everything and one address", "-j DROP", "-d 10.0.0.2/32 -j B"],
    ["overlapping ranges", "-s 10.0.0.0/24 -j B", "-s 10.0.0.0/8 -j DROP"],
    ["two negated sources", "! -s 10.0.0.0/24 -j B", "! -s 10.0.1.0/24 -j DROP"],
    ["overlapping ports", "-p tcp -m tcp --dport 80 -j B", "-p tcp -m tcp --dport 70:90 -j DROP"],
    ["other states", "-m conntrack --ctstate NEW -j B", "-m conntrack --ctstate ESTABLISHED -j DROP"],
    ["a prefix of interfaces", "-i eth+ -j B", "-i eth1 -j DROP"],
  ])("%s", (_, first, second) => {
    expect(compareRuleSets(ruleSet(first, second), ruleSet(second, first))).toEqual([
      { kind: "order", table: "filter", chain: "A", first, second },
    ]);
  });
});

describe("what differs", () => {
  test("rules, with repeated ones counted", () => {
    expect(compareRuleSets(ruleSet("-j B", "-j B", "-j DROP"), ruleSet("-j B", "-j RETURN"))).toEqual([
      { kind: "rule-missing", table: "filter", chain: "A", rule: "-j B" },
      { kind: "rule-missing", table: "filter", chain: "A", rule: "-j DROP" },
      { kind: "rule-extra", table: "filter", chain: "A", rule: "-j RETURN" },
    ]);
  });

  test("chains and policies", () => {
    const other = parseSave("*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n:C - [0:0]\nCOMMIT\n");
    expect(compareRuleSets(ruleSet(), other)).toEqual([
      { kind: "policy", table: "filter", chain: "INPUT", expected: "ACCEPT", actual: "DROP" },
      { kind: "chain-missing", table: "filter", chain: "B" },
      { kind: "chain-extra", table: "filter", chain: "C" },
    ]);
  });

  test("only in the chains that are asked about", () => {
    const other = parseSave("*filter\n:INPUT DROP [0:0]\nCOMMIT\n");
    expect(compareRuleSets(ruleSet(), other, { chains: (_, chain) => chain === "INPUT" })).toMatchObject([
      { kind: "policy" },
    ]);
  });
});

test("an absent built-in chain is an empty one that accepts", () => {
  const nothing = parseSave("");
  expect(kinds(nothing, parseSave("*nat\n:INPUT ACCEPT [0:0]\nCOMMIT\n"))).toEqual([]);
  expect(kinds(nothing, parseSave("*nat\n:INPUT DROP [0:0]\nCOMMIT\n"))).toEqual(["policy"]);
});

test("the same in other words is equal", () => {
  const typed: RuleSet = new Map([
    [
      "filter",
      {
        table: "filter",
        chains: new Map([
          [
            "A",
            {
              name: "A",
              rules: [
                {
                  source: { negated: false, cidr: "10.0.0.9/8" },
                  matches: [{ kind: "conntrack", states: ["ESTABLISHED", "RELATED"] }],
                  target: { kind: "accept" },
                },
              ],
            },
          ],
        ]),
      },
    ],
  ]);
  const saved = parseSave(
    "*filter\n:A - [0:0]\n-A A -s 10.0.0.0/8 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\nCOMMIT\n",
  );
  expect(compareRuleSets(typed, saved)).toEqual([]);
});

// Around the ends of blocks of 64 bytes, and with characters of more than one byte.
test.each([0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 1_000])(
  "any engine's hash is Node's, of %d characters",
  (length) => {
    for (const character of ["a", "ü", "語"]) {
      const text = character.repeat(length);
      const expected = node.sha256(text);
      expect(expected).toHaveLength(32);
      expect(any.sha256(text)).toBe(expected);
      for (const digest of [any.startDigest(), node.startDigest()]) {
        for (const piece of [text.slice(0, length / 2), text.slice(length / 2)]) digest.update(piece);
        expect(digest.base64()).toBe(btoa(expected));
      }
    }
  },
);

test("README example", () => expectReadmeExample(import.meta.dirname));

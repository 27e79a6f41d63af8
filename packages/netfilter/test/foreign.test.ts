import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  LazySaveParser,
  type Match,
  parseList,
  parseRestore,
  parseSave,
  type Rule,
  RuleParseError,
  type RuleSet,
  RuleTextError,
  renderCommand,
  renderRule,
  ruleEquals,
  ruleKey,
  SaveParser,
} from "../src/index.ts";
import { isWritable } from "../src/text/compare.ts";
import { tokenize } from "../src/text/parse-rule.ts";

/** What another program may write into a comment: anything but a zero, also what looks like lines of a listing. */
const comment = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc
      .array(
        fc.constantFrom(
          "\n",
          "\r",
          "\t",
          '"',
          "'",
          "\\",
          " ",
          "-A OURS -j DROP",
          "-A X -j Y",
          ":OURS - [0:0]",
          "COMMIT",
          "*nat",
          "[1:2] -A OURS",
          "# x",
          '--comment "',
          "-j",
          "\u001b[2J",
          "\ufffd",
          "é",
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join("")),
  )
  .map((text) => text.replaceAll("\0", "").toWellFormed());

/** As xtables_save_string prints it. */
function quoted(text: string): string {
  if (/^[A-Za-z0-9_-]+$/.test(text)) return text;
  return `"${text.replaceAll(/["'\\]/g, "\\$&")}"`;
}

const foreign = comment.map((text) => `-m comment --comment ${quoted(text)} -j RETURN`);

const OUR_RULES = ['-d 10.96.0.1/32 -m comment --comment "default/web:http cluster IP" -j OURS', "-j OURS"];

/** A listing in which rules of others stand before, between and behind ours. */
const listing = fc
  .tuple(
    fc.array(foreign, { maxLength: 5 }),
    fc.array(foreign, { maxLength: 5 }),
    fc.array(foreign, { maxLength: 5 }),
    fc.boolean(),
  )
  .map(([before, between, after, counters]) => {
    const append = (chain: string) => (rule: string) => `${counters ? "[0:0] " : ""}-A ${chain} ${rule}`;
    const [first = "", second = ""] = OUR_RULES;
    const output = [...before, first, ...between, second, ...after];
    const lines = [
      ...output.map(append("OUTPUT")),
      ...after.map(append("THEIRS")),
      append("OURS")("-j ACCEPT"),
      ...before.map(append("X")),
    ];
    const chains = [":OUTPUT ACCEPT [0:0]", ":THEIRS - [0:0]", ":OURS - [0:0]", ":X - [0:0]"];
    return {
      text: ["# Generated", "*nat", ...chains, ...lines, "COMMIT", "# Completed", ""].join("\n"),
      output,
      after,
      before,
    };
  });

const rulesOf = (saved: RuleSet, chain: string) => saved.get("nat")?.chains.get(chain)?.rules ?? [];

function inPieces(text: string, size: number): RuleSet {
  const parser = new SaveParser({ lenient: true });
  for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size));
  return parser.end();
}

describe("comments of others, whatever they say, take no rule from us and give us none", () => {
  test("in a listing, whole or in pieces, read at once or when asked for", () => {
    fc.assert(
      fc.property(listing, fc.integer({ min: 1, max: 50 }), ({ text, output, after, before }, size) => {
        for (const saved of [parseSave(text), parseSave(text, { lenient: true }), inPieces(text, size)]) {
          expect([...(saved.get("nat")?.chains.keys() ?? [])]).toEqual(["OUTPUT", "THEIRS", "OURS", "X"]);
          expect(rulesOf(saved, "OURS").map(renderRule)).toEqual(["-j ACCEPT"]);
          expect(rulesOf(saved, "OUTPUT")).toHaveLength(output.length);
          expect(rulesOf(saved, "THEIRS")).toHaveLength(after.length);
          expect(rulesOf(saved, "X")).toHaveLength(before.length);
          const keys = rulesOf(saved, "OUTPUT").map(ruleKey);
          expect(OUR_RULES.map((rule) => keys.indexOf(rule))).toEqual([
            output.indexOf(OUR_RULES[0] ?? ""),
            output.indexOf(OUR_RULES[1] ?? ""),
          ]);
        }
      }),
      { numRuns: runs(175) },
    );
  });

  test("in a chain's list", () => {
    fc.assert(
      fc.property(fc.array(foreign, { maxLength: 6 }), (rules) => {
        const text = ["-P OUTPUT ACCEPT", ...[...rules, "-j OURS"].map((rule) => `-A OUTPUT ${rule}`), ""].join("\n");
        const read = parseList(text, "nat", { lenient: true }).chains.get("OUTPUT")?.rules ?? [];
        expect(read).toHaveLength(rules.length + 1);
        expect(read.map(ruleKey).at(-1)).toBe("-j OURS");
      }),
    );
  });
});

describe("any text at all", () => {
  const line = fc.oneof(
    comment,
    foreign.map((rule) => `-A OURS ${rule}`),
    fc.constantFrom("-A OURS", "-A OURS -j", ":A", "-A GONE -j X", "[1:", "-A OURS -s 10.0.0.1/255.0.255.0"),
  );

  test("within a table stops no lenient reader, and what is declared is there", () => {
    fc.assert(
      fc.property(
        fc.array(
          line.filter((text) => !/^(?:\*|COMMIT)/m.test(text)),
          { maxLength: 8 },
        ),
        (lines) => {
          const text = ["*nat", ":OURS - [0:0]", "-A OURS -j ACCEPT", ...lines, "COMMIT", ""].join("\n");
          expect(rulesOf(parseSave(text, { lenient: true }), "OURS").length).toBeGreaterThan(0);
        },
      ),
      { numRuns: runs(175) },
    );
  });

  test("a listing that was cut off is an error all the same", () => {
    expect(() => parseSave("*nat\n:A - [0:0]\n-A A -j B\n", { lenient: true })).toThrow(RuleParseError);
  });
});

function lazily(text: string) {
  const parser = new LazySaveParser();
  parser.push(text);
  return parser.end();
}

describe("a rule that can't be read", () => {
  const text = "*nat\n:A - [0:0]\n-A A -o a\nb -j ACCEPT\n-A A -s 10.0.0.1/255.0.255.0\n-A A -j B\nCOMMIT\n";

  test("is its text, and one rule", () => {
    const rules = rulesOf(parseSave(text, { lenient: true }), "A");
    expect(rules.slice(1)).toEqual([
      { matches: [{ kind: "unreadable", text: "-s 10.0.0.1/255.0.255.0" }] },
      { matches: [], target: { kind: "jump", chain: "B" } },
    ]);
    expect(rules[0]?.outInterface).toEqual({ value: "a\nb" });
  });

  test("is an error, with its line, for a caller that needs all rules", () => {
    expect(() => parseSave(text)).toThrow(/^line 4: neither a table/);
    expect(() => lazily(text.replace("a\nb", "a")).get("nat")?.chains.get("A")?.rules).toThrow(/^line 4: /);
  });

  test("has a key of its own, is equal only to itself, and is not written", () => {
    const [first, second] = rulesOf(parseSave(text, { lenient: true }), "A") as [Rule, Rule];
    expect(ruleKey(first)).not.toBe(ruleKey(second));
    expect([ruleEquals(first, { ...first }), ruleEquals(first, second)]).toEqual([true, false]);
    expect([first, second].map(isWritable)).toEqual([false, false]);
    expect(() => renderRule(second)).toThrow("can't be written, as it could not be read");
  });
});

test("the lines of rules are those that they begin in, also behind a comment of several lines", () => {
  const text = '*nat\n:A - [0:0]\n-A A -m comment --comment "x\ny\nz" -j B\n-A A -j C\nCOMMIT\n';
  expect(lazily(text).get("nat")?.chains.get("A")?.lines).toEqual([3, 6]);
});

/** Text that tries to get out of its argument, and text of any other kind. */
const hostile = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({ unit: "grapheme", maxLength: 100 }),
  fc
    .array(
      fc.constantFrom(
        '"',
        "'",
        "\\",
        " ",
        "\n",
        "\r",
        "\0",
        "\t",
        "--",
        "-j",
        "ACCEPT",
        "-A",
        "!",
        "#",
        "COMMIT",
        "$(x)",
        "é",
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join("")),
);

function ruleWith(match: Match): Rule {
  return { matches: [match], target: { kind: "return" } };
}

/** The rendered line, or undefined where the renderer refused it by its own error. */
function rendered(rule: Rule, chain = "KUBE-X"): string | undefined {
  try {
    return renderCommand({ kind: "append", chain, rule });
  } catch (error) {
    if (error instanceof RuleTextError) return undefined;
    throw error;
  }
}

function expectSafe(rule: Rule): void {
  const line = rendered(rule);
  if (line === undefined) return;
  expect(line).not.toMatch(/[\n\r\0]/);
  expect(parseRestore(`*nat\n${line}\nCOMMIT\n`)).toEqual([
    { table: "nat", commands: [{ kind: "append", chain: "KUBE-X", rule }] },
  ]);
}

describe("hostile texts never leave their argument", () => {
  test("comments", () => {
    fc.assert(
      fc.property(hostile, (text) => expectSafe(ruleWith({ kind: "comment", text }))),
      { numRuns: runs(1000) },
    );
  });

  test("a comment is one word of the line, whatever it says", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const line = rendered(ruleWith({ kind: "comment", text }));
        fc.pre(line !== undefined);
        expect(tokenize(line ?? "").texts).toEqual([
          "-A",
          "KUBE-X",
          "-m",
          "comment",
          "--comment",
          text,
          "-j",
          "RETURN",
        ]);
      }),
      { numRuns: runs(1000) },
    );
  });

  test("names of lists, counters and sets", () => {
    const mask = "255.255.255.255";
    fc.assert(
      fc.property(hostile, (name) => {
        expectSafe(ruleWith({ kind: "recent", op: "set", name, mask, side: "rsource" }));
        expectSafe(ruleWith({ kind: "nfacct", name }));
        expectSafe(ruleWith({ kind: "set", name, flags: ["dst"] }));
      }),
      { numRuns: runs(1000) },
    );
  });

  test("chains, interfaces, addresses and protocols", () => {
    fc.assert(
      fc.property(hostile, (value) => {
        const cases: [rule: Rule, words: number][] = [
          [{ matches: [], inInterface: { value } }, 3],
          [{ matches: [], source: { cidr: value } }, 3],
          [{ matches: [], protocol: { value } }, 3],
          [{ matches: [], target: { kind: "jump", chain: value } }, 3],
          [{ matches: [], target: { kind: "dnat", to: value } }, 5],
          [{ matches: [], target: { kind: "reject", with: value } }, 5],
        ];
        for (const [rule, words] of cases) {
          const line = rendered(rule);
          if (line !== undefined) expect(tokenize(line).texts.filter((word) => word !== value)).toHaveLength(words);
        }
        const line = rendered({ matches: [] }, value);
        if (line !== undefined) expect(tokenize(line).texts).toEqual(["-A", value]);
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe("what is refused", () => {
  test.each([
    ["a line feed", "a\nb"],
    ["a zero", "a\0b"],
    ["an escape sequence", "a\u001b[2Jb"],
    ["a C1 control", "a\u0085b"],
    ["a lone surrogate", "a\ud800b"],
    ["256 bytes", "é".repeat(128)],
  ])("a comment with %s", (_, text) => {
    expect(() => renderRule(ruleWith({ kind: "comment", text }))).toThrow(RuleTextError);
  });

  test("a comment of 255 bytes is not", () => {
    expect(renderRule(ruleWith({ kind: "comment", text: `${"é".repeat(127)}x` }))).toContain("é");
  });

  test.each(["", "-x", "!x", "a b", 'a"b', "a\\b", "ä", "ACCEPT", "LOG", "A".repeat(29)])(
    "the chain name %j",
    (chain) => {
      expect(() => renderCommand({ kind: "chain", chain })).toThrow(RuleTextError);
    },
  );

  test.each([-1, 1.5, 0x10000, Number.NaN])("the port %d", (port) => {
    expect(() => renderRule(ruleWith({ kind: "tcp", dport: { from: port, to: port } }))).toThrow(/port "/);
  });

  test("the error names field and value", () => {
    expect(() => renderRule(ruleWith({ kind: "comment", text: "a\nb" }))).toThrow(
      expect.objectContaining({ field: "comment", value: "a\nb" }),
    );
  });
});

import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Match, parseRestore, type Rule, RuleTextError, renderCommand, renderRule } from "../src/index.ts";
import { tokenize } from "../src/text/parse-rule.ts";

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

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { explainedDocuments } from "../src/manifests/yaml-documents.ts";
import { quickDocuments } from "../src/manifests/yaml-quick.ts";

const explained = (text: string) => explainedDocuments({ text, line: 0 });

/** What the quick parser takes means the same to both; a document that is empty is no object to either. */
function agreed(text: string): void {
  const quick = quickDocuments(text);
  if (quick !== undefined) expect(quick.filter(isThere)).toEqual(explained(text).filter(isThere));
}

const isThere = (document: unknown) => document !== null;

test("what somebody writes is read quickly, and means what it means to the other parser", () => {
  const style = fc.constantFrom({}, { indentSeq: false }, { lineWidth: 20 }, { collectionStyle: "flow" as const });
  fc.assert(
    fc.property(fc.jsonValue(), style, (value, options) => {
      const text = stringify({ value }, options);
      fc.pre(!/[\t&]|<<|^ +---/m.test(text));
      expect(quickDocuments(text)).toEqual([{ value }]);
      agreed(text);
    }),
  );
});

const PLAIN = [
  "~",
  "null",
  "Null",
  "yes",
  "on",
  "True",
  "0777",
  "0o17",
  "0x1F",
  "0b1",
  "1_000",
  "1:30",
  "2026-11-23",
  "1e3",
];
const MORE = [
  ".5",
  "5.",
  "+5",
  "-0",
  "-.inf",
  ".NaN",
  "1.0",
  "10.96.0.10",
  "fd00::1",
  "=",
  "<<",
  "!!str 5",
  "!!int '5'",
];

test.each([...PLAIN, ...MORE])("%s is what it is to the other parser", (scalar) => {
  agreed(`a: ${scalar}\n`);
  agreed(`- ${scalar}\n`);
  agreed(`{a: ${scalar}}\n`);
});

test("numbers and words of every spelling", () => {
  const spelling = fc.string({ unit: fc.constantFrom(..."0123456789+-._eExoabfFinNuUlLtTrRsSyY:~") });
  fc.assert(fc.property(spelling, (scalar) => agreed(`a: ${scalar}\n`)));
});

test("texts of YAML's own signs", () => {
  const token = fc.constantFrom(
    "a",
    "b: ",
    "- ",
    "\n",
    "  ",
    "? ",
    ": ",
    "|\n",
    ">\n",
    '"',
    "'",
    "#",
    "---\n",
    "...\n",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "&x ",
    "*x",
    "<<: ",
    "!t ",
    "%",
    "\t",
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 14 }), (tokens) => agreed(tokens.join(""))),
    { numRuns: 20_000 },
  );
});

describe("what is out of the ordinary is left to the other parser", () => {
  test.each([
    ["a mistake", "a: 1\nb: [\n"],
    ["a key twice", "a: 1\na: 2\n"],
    ["a tag that nobody knows", "a: !x 1\n"],
    ["an anchor", "a: &a 1\n"],
    ["text without a key", "just text\n"],
    ["a merge", "a: {<<: {b: 1}}\n"],
    ["a key that is no word", "80: http\n"],
    ["a tab", "a:\t1\n"],
    ["too deep", `${"[".repeat(101)}${"]".repeat(101)}\n`],
  ])("%s", (_what, text) => {
    expect(quickDocuments(text)).toBeUndefined();
  });
});

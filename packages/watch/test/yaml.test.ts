import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse, parseDocument, stringify } from "yaml";
import { documentsOf, MAX_PIECE } from "../src/manifests/yaml-documents.ts";

const read = (text: string, line = 0) => documentsOf({ text, line });

test("what another library writes is read as it was meant", () => {
  const style = fc.constantFrom({}, { indentSeq: false }, { lineWidth: 20 }, { collectionStyle: "flow" as const });
  fc.assert(
    fc.property(fc.jsonValue(), style, (value, options) => {
      const meant = JSON.parse(JSON.stringify({ value }));
      expect(read(stringify(meant, options))).toEqual([meant]);
    }),
  );
});

const PLAIN = ["~", "null", "Null", "yes", "on", "True", "0777", "0o17", "0x1F", "0b1", "1_000", "1:30", "2026-11-23"];
const MORE = ["1e3", ".5", "5.", "+5", "-0", "-.inf", ".NaN", "1.0", "10.96.0.10", "fd00::1", "=", "!!str 5"];

test.each([...PLAIN, ...MORE])("%s is what it is to another library", (scalar) => {
  for (const text of [`a: ${scalar}\n`, `- ${scalar}\n`, `{a: ${scalar}}\n`]) expect(read(text)).toEqual([parse(text)]);
});

test("numbers and words of every spelling are what they are to another library", () => {
  const spelling = fc.string({ unit: fc.constantFrom(..."0123456789+-._eExoabfFinNuUlLtTrRsSyY~"), minLength: 1 });
  fc.assert(
    fc.property(spelling, (scalar) => {
      const text = `a: ${scalar}\n`;
      fc.pre(isMapOfText(text));
      expect(read(text)).toEqual([parse(text)]);
    }),
  );
});

/** Not one of YAML's own signs, such as `-` by itself. */
function isMapOfText(text: string): boolean {
  return parseDocument(text).errors.length === 0 && !/^a: -(?: |$)/m.test(text);
}

test("a map that merges itself is merged with nothing", () => {
  expect(read("a: &a {<<: *a, b: 1}\n")).toEqual([{ a: { b: 1 } }]);
});

test.each([
  ["a key twice", "a: 1\na: 2\n", 2, "duplicated mapping key"],
  ["a tag that nobody knows", "a: 1\nb: !x 1\n", 2, "unknown scalar tag"],
  ["an alias of nothing", "a: 1\nb: *x\n", 2, "unidentified alias"],
  ["a key that is a list", "? [b]\n: 1\n", 1, "complex keys"],
  ["a quote without an end", 'a: 1\nb: "\n', 3, "indentation"],
])("%s is a mistake in its line", (_what, text, line, message) => {
  expect(() => read(text, 7)).toThrow(message);
  expect(() => read(text, 7)).toThrow(expect.objectContaining({ name: "ManifestSyntaxError", line: line + 7 }));
});

const filled = (text: string) => text.repeat(Math.floor((MAX_PIECE - 100) / text.length));

/** As long as a piece may be; other parsers take minutes, or hundreds of megabytes, for some of them. */
describe("texts that are made to take long are read, or refused, like others", () => {
  test.each([
    ["tags", `a: ${filled("!a ")}`, /tag/],
    ["brackets", filled("["), /nested deeper than 100 levels/],
    ["empty maps", `a: [${filled("{},")}]`, undefined],
    ["anchors", filled("- &a x\n"), undefined],
    ["aliases", `a: &a x\nb:\n${filled("- *a\n")}`, /alias/],
    ["an open quote", `"${filled("a\n")}`, /unexpected end/],
    ["dashes", filled("- "), /nested deeper than 100 levels/],
    ["merges of merges", `a: &a {b: 1}\nc: {<<: [${filled("*a, ").slice(0, 4_000)}*a]}\n`, /merge|alias/],
    ["comments", filled("#\n"), undefined],
  ])("%s", (_what, text, error) => {
    if (error === undefined) expect(read(text).length).toBeLessThanOrEqual(1);
    else expect(() => read(text)).toThrow(error);
  });
});

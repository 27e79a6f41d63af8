import { describe, expect, test } from "vitest";
import { parseRestore, parseSave, renderRuleSet, renderTables } from "../src/index.ts";
import { goldenTexts } from "./golden.ts";

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

import { describe, expect, test } from "vitest";
import { plain, styleFor } from "../src/frame/style.ts";

const COLORED = "\u001b[32mgood\u001b[39m";

describe("colors", () => {
  test.each<[what: string, terminal: boolean, env: Record<string, string>, expected: string]>([
    ["a terminal", true, {}, COLORED],
    ["a pipe or a file", false, {}, "good"],
    ["NO_COLOR", true, { NO_COLOR: "1" }, "good"],
    ["NO_COLOR without a value, which is none", true, { NO_COLOR: "" }, COLORED],
    ["a terminal that has none", true, { TERM: "dumb" }, "good"],
  ])("%s", (_what, terminal, env, expected) => expect(styleFor(terminal, env).good("good")).toBe(expected));

  test("without them text is as it was", () => {
    for (const paint of Object.values(plain)) expect(paint("text")).toBe("text");
  });
});

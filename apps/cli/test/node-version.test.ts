import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { tooOld } from "../src/node-version.ts";

test.each(["20.20.0", "22.18.1", "18.0.0"])("Node %s cannot run it, and is told what can", (version) => {
  expect(tooOld(version)).toBe(`fairlead needs Node 22.19 or newer, this is ${version}\n`);
});

test.each(["22.19.0", "23.0.0", "24.9.0"])("Node %s can", (version) => {
  expect(tooOld(version)).toBeUndefined();
});

test("the package says the same", () => {
  expect(manifest.engines.node).toBe(">=22.19");
});

import { expect, test } from "vitest";
import { releaseMode } from "../src/release/mode.ts";

test.each([
  ["a version before any release, nothing to take in", { changesets: 0, version: "0.0.0", tags: [] }, "none"],
  ["changesets", { changesets: 1, version: "0.0.0", tags: [] }, "version"],
  ["a merged release", { changesets: 0, version: "0.1.0", tags: [] }, "publish"],
  ["the same after its tag", { changesets: 0, version: "0.1.0", tags: ["v0.1.0"] }, "none"],
  ["a release, the one before having its tag", { changesets: 0, version: "0.1.10", tags: ["v0.1.1"] }, "publish"],
  ["changesets after a release that broke off", { changesets: 2, version: "0.1.0", tags: [] }, "version"],
] as const)("%s", (_name, state, mode) => {
  expect(releaseMode(state)).toBe(mode);
});

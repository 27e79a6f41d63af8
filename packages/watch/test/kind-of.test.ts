import { expect, test } from "vitest";
import { isKindOf } from "../src/manifests/kind-of.ts";

test.each([
  ["SpiderIPPool", "spiderippools", true],
  ["NetworkPolicy", "networkpolicies", true],
  ["Address", "addresses", true],
  ["Endpoints", "endpoints", true],
  ["Pool", "ippools", false],
  ["IPPool", "subnets", false],
])("%s is a kind of %s: %s", (kind, plural, expected) => {
  expect(isKindOf(kind, plural)).toBe(expected);
});

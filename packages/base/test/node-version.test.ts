import { expect, test } from "vitest";
import { tooOld } from "../src/index.ts";

test.each(["20.20.0", "22.18.1", "18.0.0"])(
  "Node %s is too old for a program that needs 22.19, which is said",
  (version) => {
    expect(tooOld("fairlead", [22, 19], version)).toBe(`fairlead needs Node 22.19 or newer, this is ${version}`);
  },
);

test.each(["22.19.0", "23.0.0", "24.9.0"])("Node %s is not", (version) => {
  expect(tooOld("fairlead", [22, 19], version)).toBeUndefined();
});

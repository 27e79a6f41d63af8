import { expect, test } from "vitest";
import { differences } from "../leaves-nothing.mjs";

test("what stays and what is gone is named with its kind, what is as it was is not", () => {
  const before = { interfaces: ["lo", "eth0"], files: ["/tmp/a"] };
  expect(differences(before, before)).toEqual([]);
  expect(differences(before, { interfaces: ["lo", "veth1"], files: ["/tmp/a", "/tmp/b"] })).toEqual([
    "interfaces: + veth1",
    "interfaces: - eth0",
    "files: + /tmp/b",
  ]);
});

import { describe, expect, test } from "vitest";
import { FakeNftables } from "../../src/fake/index.ts";
import { cases } from "./cases.ts";
import { expected, runCase } from "./run-case.ts";

describe.for(["ip", "ip6"] as const)("in memory: %s", (family) => {
  test.for(cases)("$name", async (given) => {
    expect(await runCase(new FakeNftables(), family, given)).toEqual(expected(given));
  });
});

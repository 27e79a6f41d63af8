import { beforeAll, describe, expect, test } from "vitest";
import { openNftables } from "../../src/index.ts";
import { inside, insideSuite } from "../kernel-test.ts";
import { cases } from "./cases.ts";
import { expected, type Outcome, runCase } from "./draft.ts";

insideSuite("nf_tables, on the kernel", () => {
  const outcomes = new Map<string, Outcome>();

  beforeAll(() =>
    inside(async () => {
      const client = await openNftables();
      for (const family of ["ip", "ip6"] as const) {
        for (const given of cases) outcomes.set(`${family} ${given.name}`, await runCase(client, family, given));
      }
      await client.close();
    }),
  );

  describe.for(["ip", "ip6"] as const)("%s", (family) => {
    test.for(cases)("$name", (given) => {
      expect(outcomes.get(`${family} ${given.name}`)).toEqual(expected(given));
    });
  });
});

import { crowdHistory, followCrowd, randomOf } from "@fairlead/testkit/crowds";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { test } from "vitest";
import { iptablesCrowd } from "./support/crowd.ts";

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), fc.integer(), async (history, seed) => {
      await followCrowd(history, iptablesCrowd(randomOf(seed)));
    }),
    { numRuns: runs(4), endOnFailure: true },
  );
});

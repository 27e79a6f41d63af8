import { describe, test } from "vitest";
import { FakeIptables } from "../../src/fake/index.ts";
import { cases } from "./cases.ts";
import { checkCase } from "./check-case.ts";

for (const family of ["IPv4", "IPv6"] as const) {
  for (const variant of ["nft", "legacy"] as const) {
    describe(`in memory: ${family}, ${variant}`, () => {
      test.for(cases)("$name", async (given) => {
        await checkCase(new FakeIptables({ family, variant, lacking: ["ipvs"] }), given);
      });
    });
  }
}

import { describe, test } from "vitest";
import { FakeIptables } from "../../src/fake/index.ts";
import { cases } from "./cases.ts";
import { checkAbsentChain, checkCase } from "./check-case.ts";

for (const family of ["IPv4", "IPv6"] as const) {
  for (const variant of ["nft", "legacy"] as const) {
    describe(`in memory: ${family}, ${variant}`, () => {
      const client = () => new FakeIptables({ family, variant, lacking: ["ipvs", "nosuchmatch"] });
      test.for(cases)("$name", (given) => checkCase(client(), given, true));
      test("chains are asked for by name, and one is not there", () => checkAbsentChain(client()));
    });
  }
}

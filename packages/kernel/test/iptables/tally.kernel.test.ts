import { fileURLToPath } from "node:url";
import type { ChainTally } from "@fairlead/netfilter";
import { expect } from "vitest";
import { createRunner, type IPFamily } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

const MAIN = fileURLToPath(new URL("tally-main.ts", import.meta.url));

async function reported(variant: "nft" | "legacy", family: IPFamily): Promise<readonly string[]> {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN, variant, family] as const;
  return (await runner.run(argv)).stdout.trim().split("\n");
}

for (const family of ["IPv4", "IPv6"] as const) {
  kernelTest(
    `nft, ${family}: a chain's number of rules, and another mark after each change of that chain, not after a packet`,
    async () => {
      const tallies = (await reported("nft", family)).map((line): Record<string, ChainTally> => JSON.parse(line));
      const counts = tallies.map((one) => [one["ONE"]?.rules, one["TWO"]?.rules, one["OUTPUT"]?.rules]);
      expect(counts).toEqual([
        [1, 0, 1],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
        [1, 0, 1],
        [1, undefined, 1],
        [2000, undefined, 1],
      ]);
      const marks = (chain: string) => tallies.map((one) => one[chain]?.mark);
      const [a, b, packet, c, d, e, f] = marks("ONE");
      expect([b, packet, d, e]).toEqual([a, a, c, c]);
      expect(new Set([a, c, f]).size).toBe(3);
      expect(new Set(marks("OUTPUT")).size).toBe(1);
      expect(new Set(marks("TWO")).size).toBe(3);
      expect(tallies.every((one) => one["NONE"] === undefined)).toBe(true);
    },
  );
}

kernelTest("legacy: nothing, as a table can be had as a whole only", async () => {
  expect(new Set(await reported("legacy", "IPv4"))).toEqual(new Set(["undefined"]));
});

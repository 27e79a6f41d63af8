import { fileURLToPath } from "node:url";
import type { TableGlance } from "@fairlead/netfilter";
import { expect } from "vitest";
import { createRunner, type IPFamily } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

const MAIN = fileURLToPath(new URL("glance-main.ts", import.meta.url));

async function glances(variant: "nft" | "legacy", family: IPFamily = "IPv4"): Promise<readonly TableGlance[]> {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN, variant, family] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0 });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

kernelTest("nft: another state after each change, the same without one", async () => {
  const [first, same, listed, ...changed] = await glances("nft");
  expect([same, listed]).toEqual([first, first]);
  expect(new Set([first, ...changed].map((one) => one?.state)).size).toBe(4);
});

kernelTest("legacy: as many entries as there are rules, and some for each chain", async () => {
  const [first, same, , more, , flushed] = await glances("legacy");
  expect(same).toEqual(first);
  // two rules, and for the chain its name and its end
  expect((more?.entries ?? 0) - (first?.entries ?? 0)).toBe(4);
  expect((more?.entries ?? 0) - (flushed?.entries ?? 0)).toBe(3);
});

for (const family of ["IPv4", "IPv6"] as const) {
  kernelTest(
    `legacy, ${family}: another state after each change of a small table, also of one rule for another`,
    async () => {
      const [first, same, listed, ...changed] = await glances("legacy", family);
      expect([same, listed]).toEqual([first, first]);
      expect(new Set([first, ...changed].map((one) => one?.state)).size).toBe(4);
    },
  );
}

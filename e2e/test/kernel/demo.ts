import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, test } from "vitest";

const main = fileURLToPath(new URL("../../src/demo/main.ts", import.meta.url));

describe("the demo on the real kernel", () => {
  test.for(["iptables", "nftables"])("proves everything in %s mode and ends with 0", async (mode) => {
    const { exitCode, stdout } = await demo(["--mode", mode]);
    expect(stdout).toMatch(/Proved with real requests on the real kernel, (\d+) of \1 checks.*nothing is left behind/);
    expect(exitCode).toBe(0);
  });

  test("without an agent it says how to build it and ends with 1", async () => {
    const { exitCode, stderr } = await demo([], { FAIRLEAD_AGENT: "/nowhere/main.js" });
    expect(stderr).toContain("pnpm --filter @fairlead/agent build");
    expect(exitCode).toBe(1);
  });

  test.for([["--kepe"], ["--mode", "nftabels"]])("%j gets the usage and ends with 2", async (args) => {
    const { exitCode, stderr } = await demo(args);
    expect(stderr).toContain("Usage: npm run demo");
    expect(exitCode).toBe(2);
  });
});

function demo(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const node = ["--conditions=@fairlead/source", "--no-warnings", main, ...args];
  return execa(process.execPath, node, { env, reject: false, stdin: "ignore", timeout: 60_000 });
}

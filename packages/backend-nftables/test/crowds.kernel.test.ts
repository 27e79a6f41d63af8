import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { kernelTest } from "./support/real-kernel.ts";

kernelTest("real packets: 200 clients over random histories of their service", async ({ runner }) => {
  const main = fileURLToPath(new URL("crowd-main.ts", import.meta.url));
  const program = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main] as const;
  const { stdout } = await runner.run([...program, "3"], { timeoutMs: 0 });
  const { seed, connections, wrong }: { seed: number; connections: number; wrong: readonly string[] } =
    JSON.parse(stdout);
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(connections).toBeGreaterThan(400);
});

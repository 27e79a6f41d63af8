import { fileURLToPath } from "node:url";
import { test } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";

/** More of them find more. */
const { FAIRLEAD_RUNS = "50" } = process.env;

kernelSuite("the fake does what the kernel does", () => {
  test("any transactions", { timeout: 30_000 + 1000 * Number(FAIRLEAD_RUNS) }, async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const main = fileURLToPath(new URL("random-main.ts", import.meta.url));
    const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main, FAIRLEAD_RUNS] as const;
    await runner.run(argv, { timeoutMs: 0 });
  });
});

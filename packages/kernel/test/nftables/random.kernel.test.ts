import { fileURLToPath } from "node:url";
import { runs } from "@fairlead/tooling/runs";
import { test } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";

kernelSuite("the fake does what the kernel does", () => {
  test("any transactions", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const main = fileURLToPath(new URL("random-main.ts", import.meta.url));
    const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main, String(runs(50))] as const;
    await runner.run(argv, { timeoutMs: 0 });
  });
});

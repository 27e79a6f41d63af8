import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

kernelTest("a copy that follows is the table whatever nft does, and is read anew only where it must be", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const main = fileURLToPath(new URL("held-main.ts", import.meta.url));
  const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
    timeoutMs: 0,
  });
  expect(JSON.parse(stdout)).toEqual([]);
});

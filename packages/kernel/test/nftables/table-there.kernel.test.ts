import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

kernelTest("nf_tables tells of a table by its family and its whole name", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const main = fileURLToPath(new URL("tables-main.ts", import.meta.url));
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0 });
  expect(JSON.parse(stdout)).toEqual([
    [false, false, false],
    [true, false, false],
  ]);
});

import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelTest } from "./kernel-test.ts";

const MAIN = fileURLToPath(new URL("flowtable-test-main.ts", import.meta.url));

kernelTest("a kernel's flowtables pass their test; where it has none, nothing was tested", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const table = "add table ip t; add flowtable ip t f { hook ingress priority 0; }";
  const hasFlowtables = await runner.run(["nft", table]).then(
    () => true,
    () => false,
  );
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0 });
  expect(JSON.parse(stdout).outcome).toBe(hasFlowtables ? "passed" : "impossible");
});

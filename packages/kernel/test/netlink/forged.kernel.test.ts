import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

kernelTest("what another process sends in the kernel's place is not taken as an answer, nor as news", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const main = fileURLToPath(new URL("forged-main.ts", import.meta.url));
  const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
    timeoutMs: 0,
  });
  const { before, after, forged, real } = JSON.parse(stdout);
  expect(after).toEqual(before);
  expect({ forged, real }).toEqual({ forged: 0, real: true });
});

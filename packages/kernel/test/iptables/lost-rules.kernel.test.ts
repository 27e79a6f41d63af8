import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

const MAIN = fileURLToPath(new URL("lost-rules-main.ts", import.meta.url));

for (const variant of ["nft", "legacy"] as const) {
  kernelTest(`${variant}: rules that another program takes away, and no others`, async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN, variant] as const;
    const { stdout } = await runner.run(argv, { timeoutMs: 0 });
    expect(stdout.trim().split("\n")).toEqual(["chain: true", "jump: true", "all: true"]);
  });
}

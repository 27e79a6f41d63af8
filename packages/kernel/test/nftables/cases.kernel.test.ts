import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { cases } from "./cases.ts";
import { expected } from "./run-case.ts";

kernelSuite("nf_tables, on the kernel", () => {
  let outcomes: Record<string, unknown> = {};

  beforeAll(async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const main = fileURLToPath(new URL("cases-main.ts", import.meta.url));
    const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
      timeoutMs: 0,
    });
    outcomes = JSON.parse(stdout);
  });

  describe.for(["ip", "ip6"] as const)("%s", (family) => {
    test.for(cases)("$name", (given) => {
      // What is undefined is not in JSON.
      expect(outcomes[`${family} ${given.name}`]).toEqual(JSON.parse(JSON.stringify(expected(given))));
    });
  });
});

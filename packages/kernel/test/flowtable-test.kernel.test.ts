import { expect } from "vitest";
import { runFlowtableTest } from "../src/index.ts";
import { insideTest } from "./kernel-test.ts";

insideTest("a kernel's flowtables pass their test; where it has none, nothing was tested", async ({ runner }) => {
  const table = "add table ip t; add flowtable ip t f { hook ingress priority 0; }";
  const hasFlowtables = await runner.run(["nft", table]).then(
    () => true,
    () => false,
  );
  expect((await runFlowtableTest()).outcome).toBe(hasFlowtables ? "passed" : "impossible");
});

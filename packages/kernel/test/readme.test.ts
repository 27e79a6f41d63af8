import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { runReadmeExample } from "@fairlead/tooling/readme";
import { expect, test } from "vitest";

test("README example", async () => {
  const { printed, promised } = await runReadmeExample(dirname(dirname(fileURLToPath(import.meta.url))));
  expect(printed).toBe(promised);
});

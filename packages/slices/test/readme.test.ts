import { fileURLToPath } from "node:url";
import { runReadmeExample } from "@fairlead/tooling/readme";
import { expect, test } from "vitest";

test("README example", async () => {
  const { printed, promised } = await runReadmeExample(fileURLToPath(new URL("..", import.meta.url)));
  expect(printed).toBe(promised);
});

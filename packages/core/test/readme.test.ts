import { resolve } from "node:path";
import { runReadmeExample } from "@fairlead/tooling/readme";
import { expect, test } from "vitest";

test("README example", async () => {
  const { printed, promised } = await runReadmeExample(resolve(import.meta.dirname, ".."));
  expect(printed).toBe(promised);
});

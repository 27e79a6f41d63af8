import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { metricsPage } from "../scripts/metrics-page.ts";

test("docs/metrics.md is what `pnpm --filter @fairlead/agent run metrics` writes", () => {
  expect(readFileSync(new URL("../../../docs/metrics.md", import.meta.url), "utf8")).toBe(metricsPage());
});

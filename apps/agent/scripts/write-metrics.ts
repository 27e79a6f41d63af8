import { writeFileSync } from "node:fs";
import { metricsPage } from "./metrics-page.ts";

/** Writes docs/metrics.md: `pnpm run metrics`. */
writeFileSync(new URL("../../../docs/metrics.md", import.meta.url), metricsPage());

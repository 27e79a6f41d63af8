import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { ChurnResult } from "../churn/figures.ts";
import type { FleetResult } from "../fleet/simulate-fleet.ts";
import type { Result } from "../measure/result.ts";
import type { Series } from "./growth-plot.ts";

const root = new URL("../../../", import.meta.url);

export const RESULTS = fileURLToPath(new URL("bench/results/", root));
export const DOCS = fileURLToPath(new URL("docs/", root));

/** What docs/performance.md shows, each by file name. */
export interface Recorded {
  /** `iptables-*.json` and `nftables-*.json` of bench/results. */
  readonly results: readonly Result[];
  /** `growth-VARIANT.json`. */
  readonly growth: readonly Series[];
  /** `churn-SERVICES.json`. */
  readonly churn: readonly ChurnResult[];
  /** `fleet.json`. */
  readonly fleet: FleetResult;
}

export async function loadRecorded(): Promise<Recorded> {
  const names = (await readdir(RESULTS)).sort();
  const load = async (name: string) => JSON.parse(await readFile(`${RESULTS}${name}`, "utf8"));
  const growthFiles = names.filter((name) => /^growth-\w+\.json$/.test(name));
  return {
    results: await Promise.all(names.filter((name) => /^(?:iptables|nftables)-.*\.json$/.test(name)).map(load)),
    churn: await Promise.all(names.filter((name) => /^churn-\d+\.json$/.test(name)).map(load)),
    fleet: await load("fleet.json"),
    growth: await Promise.all(
      growthFiles.map(async (name) => ({ name: name.replace(/^growth-|\.json$/g, ""), ...(await load(name)) })),
    ),
  };
}

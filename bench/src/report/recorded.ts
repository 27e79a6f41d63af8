import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Result } from "../measure/result.ts";
import type { Series } from "./growth-plot.ts";

const root = new URL("../../../", import.meta.url);

export const RESULTS = fileURLToPath(new URL("bench/results/", root));
export const MICRO_FILE = fileURLToPath(new URL("bench/results/micro.json", root));
export const DOCS = fileURLToPath(new URL("docs/", root));

/** What docs/performance.md shows, each by file name. */
export interface Recorded {
  /** `iptables-*.json` and `nftables-*.json` of bench/results. */
  readonly results: readonly Result[];
  /** `growth-VARIANT.json`. */
  readonly growth: readonly Series[];
}

export async function loadRecorded(): Promise<Recorded> {
  const names = (await readdir(RESULTS)).sort();
  const load = async (name: string) => JSON.parse(await readFile(`${RESULTS}${name}`, "utf8"));
  const growthFiles = names.filter((name) => /^growth-\w+\.json$/.test(name));
  return {
    results: await Promise.all(names.filter((name) => /^(?:iptables|nftables)-.*\.json$/.test(name)).map(load)),
    growth: await Promise.all(
      growthFiles.map(async (name) => ({ name: name.replace(/^growth-|\.json$/g, ""), ...(await load(name)) })),
    ),
  };
}

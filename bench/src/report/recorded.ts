import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { recordedFigures } from "../micro/micro.ts";
import type { Recorded } from "./tables.ts";

const root = new URL("../../../", import.meta.url);

const RESULTS = fileURLToPath(new URL("bench/results/", root));
export const MICRO_FILE = fileURLToPath(new URL("bench/results/micro.json", root));
export const DOCS = fileURLToPath(new URL("docs/", root));

export const TABLES_FILE = fileURLToPath(new URL("bench/tables.md", root));
const MEANING = fileURLToPath(new URL("bench/meaning.md", root));

/**
 * Reads what `bench/results` holds: `iptables-*.json`, `nftables-*.json`, `ipvs-*.json`, `growth-VARIANT.json` and
 * `micro.json`.
 */
export async function loadRecorded(): Promise<Recorded> {
  const names = (await readdir(RESULTS)).sort();
  const load = async (name: string) => JSON.parse(await readFile(`${RESULTS}${name}`, "utf8"));
  const growthFiles = names.filter((name) => /^growth-\w+\.json$/.test(name));
  return {
    results: await Promise.all(names.filter((name) => /^(?:iptables|nftables)-.*\.json$/.test(name)).map(load)),
    ipvs: await Promise.all(names.filter((name) => /^ipvs-.*\.json$/.test(name)).map(load)),
    growth: await Promise.all(
      growthFiles.map(async (name) => ({ name: name.replace(/^growth-|\.json$/g, ""), ...(await load(name)) })),
    ),
    micro: await recordedFigures(MICRO_FILE),
    meaning: await readFile(MEANING, "utf8"),
  };
}

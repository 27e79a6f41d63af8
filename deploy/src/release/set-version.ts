import { glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deployDir } from "../paths.ts";

/** Where a version stands in YAML: the image's tag, wherever it is named, and the chart's own fields. */
const IMAGE_TAG = /(ghcr\.io\/fairlead-dev\/fairlead:)[\w.+-]+/g;
const CHART = "helm/fairlead/Chart.yaml";
const CHART_FIELDS = [/^(version: )\S+$/gm, /^(appVersion: )\S+$/gm];

/**
 * Gives manifests and chart the version of the packages.
 *
 * @param dir a folder like `deploy`
 * @throws Error when a place that must have the version has none
 */
export async function setVersion(version: string, dir = deployDir): Promise<void> {
  let images = 0;
  for await (const name of glob("{base,overlays,components,helm,test}/**/*.yaml", { cwd: dir })) {
    const file = join(dir, name);
    const text = await readFile(file, "utf8");
    if (text.search(IMAGE_TAG) < 0) continue;
    images += 1;
    await writeFile(file, text.replaceAll(IMAGE_TAG, `$1${version}`));
  }
  if (images === 0) throw new Error(`${dir}: no manifest names ghcr.io/fairlead-dev/fairlead:VERSION`);
  const chart = join(dir, CHART);
  await writeFile(chart, replaceFields(await readFile(chart, "utf8"), version));
}

function replaceFields(chart: string, version: string): string {
  return CHART_FIELDS.reduce((before, field) => {
    if (before.search(field) < 0) throw new Error(`${CHART}: there is no ${field.source}`);
    return before.replaceAll(field, `$1${version}`);
  }, chart);
}

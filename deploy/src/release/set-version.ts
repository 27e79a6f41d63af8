import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deployDir } from "../paths.ts";

/** Where a version stands in text that changesets does not know of. */
const PLACES: Readonly<Record<string, readonly RegExp[]>> = {
  "helm/fairlead/Chart.yaml": [/^(version: )\S+$/gm, /^(appVersion: )\S+$/gm],
  "base/daemonset.yaml": [/(ghcr\.io\/fairlead-dev\/fairlead:)\S+/g],
  "test/fixtures/founding-case.yaml": [/(ghcr\.io\/fairlead-dev\/fairlead:)\S+/g],
};

/** Gives manifests and chart the version of the packages. */
export async function setVersion(version: string, dir = deployDir): Promise<void> {
  for (const [name, patterns] of Object.entries(PLACES)) {
    const file = join(dir, name);
    await writeFile(file, replaceVersion(await readFile(file, "utf8"), patterns, version, name));
  }
}

/** @throws Error when the version does not stand where it is looked for */
function replaceVersion(text: string, patterns: readonly RegExp[], version: string, name: string): string {
  return patterns.reduce((before, pattern) => {
    if (before.search(pattern) < 0) throw new Error(`${name}: there is no ${pattern.source}`);
    return before.replaceAll(pattern, `$1${version}`);
  }, text);
}

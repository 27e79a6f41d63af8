import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryDir } from "../paths.ts";

/** A package that goes to the npm registry. */
export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  /** Absolute folder. */
  readonly dir: string;
}

/**
 * All packages that are not private, the apps last.
 *
 * @param checkout absolute folder
 */
export async function publishedPackages(checkout = repositoryDir): Promise<PublishedPackage[]> {
  const folder = join(checkout, "packages");
  const apps = [join(checkout, "apps/agent"), join(checkout, "apps/cli")];
  const dirs = [...(await readdir(folder)).sort().map((name) => join(folder, name)), ...apps];
  const found = await Promise.all(dirs.map(readPublished));
  return found.filter((item) => item !== undefined);
}

async function readPublished(dir: string): Promise<PublishedPackage | undefined> {
  const manifest = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
  if (manifest.private === true) return undefined;
  return { name: String(manifest.name), version: String(manifest.version), dir };
}

import { readdir } from "node:fs/promises";
import type { CniFlavor } from "./flavor.ts";

/** What a flavor's folder exports. */
interface FlavorModule {
  readonly flavor: CniFlavor;
  /** Other ways of the same network, asked for as `FOLDER:VARIANT`; they have the flavor's name. */
  readonly variants?: Readonly<Record<string, CniFlavor>>;
}

/** What can be asked for: the folders alongside this file, and their variants. */
export async function flavorNames(): Promise<readonly string[]> {
  const entries = await readdir(new URL(".", import.meta.url), { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const names = await Promise.all(
    folders.sort().map(async (folder) => {
      const { variants = {} } = await load(folder);
      return [folder, ...Object.keys(variants).map((variant) => `${folder}:${variant}`)];
    }),
  );
  return names.flat();
}

/** @param name one of `flavorNames` */
export async function loadFlavor(name: string): Promise<CniFlavor> {
  const [folder = name, variant] = name.split(":");
  const { flavor, variants = {} } = await load(folder);
  return variant === undefined ? flavor : (variants[variant] ?? flavor);
}

function load(folder: string): Promise<FlavorModule> {
  return import(new URL(`${folder}/index.ts`, import.meta.url).href);
}

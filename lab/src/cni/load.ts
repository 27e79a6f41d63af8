import { readdir } from "node:fs/promises";
import type { CniFlavour } from "./flavour.ts";

/** What a flavour's folder exports. */
interface FlavourModule {
  readonly flavour: CniFlavour;
  /** Other ways of the same network, asked for as `FOLDER:VARIANT`; they have the flavour's name. */
  readonly variants?: Readonly<Record<string, CniFlavour>>;
}

/** What can be asked for: the folders alongside this file, and their variants. */
export async function flavourNames(): Promise<readonly string[]> {
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

/** @param name one of `flavourNames` */
export async function loadFlavour(name: string): Promise<CniFlavour> {
  const [folder = name, variant] = name.split(":");
  const { flavour, variants = {} } = await load(folder);
  return variant === undefined ? flavour : (variants[variant] ?? flavour);
}

function load(folder: string): Promise<FlavourModule> {
  return import(new URL(`${folder}/index.ts`, import.meta.url).href);
}

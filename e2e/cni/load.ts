import { readdir } from "node:fs/promises";
import type { CniFlavour } from "./flavour.ts";

/** The names of all flavours: the folders beside this file. */
export async function flavourNames(): Promise<readonly string[]> {
  const entries = await readdir(new URL(".", import.meta.url), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

/** @param name one of `flavourNames` */
export async function loadFlavour(name: string): Promise<CniFlavour> {
  const module: { readonly flavour: CniFlavour } = await import(new URL(`${name}/index.ts`, import.meta.url).href);
  return module.flavour;
}

import { copyFile, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hashText } from "./hash.ts";
import type { Layer } from "./layer.ts";

/**
 * A layer that is made once and kept; without a folder it is made anew.
 *
 * @param key everything that decides what is in it
 */
export async function kept<T extends { readonly layer: Layer }>(
  folder: string | undefined,
  key: readonly string[],
  make: () => Promise<T>,
): Promise<T> {
  if (folder === undefined) return make();
  const path = join(folder, hashText(JSON.stringify(key)).replace(":", "-"));
  const record = await readFile(`${path}.json`, "utf8").catch(() => undefined);
  if (record !== undefined) return JSON.parse(record);
  const made = await make();
  await mkdir(folder, { recursive: true });
  const file = `${path}.layer`;
  await copyFile(made.layer.file, file);
  const value = { ...made, layer: { ...made.layer, file } };
  // The record comes last, and at once: without it there is no layer.
  await writeFile(`${path}.part`, JSON.stringify(value));
  await rename(`${path}.part`, `${path}.json`);
  return value;
}

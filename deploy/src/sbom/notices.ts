import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NpmPackage } from "./bundle.ts";

/** The licenses of what is bundled, word for word, as most of them ask for. */
export async function thirdPartyNotices(packages: readonly NpmPackage[]): Promise<string> {
  const parts = await Promise.all(packages.map(notice));
  return `Fairlead's programs contain the following packages.\n\n${parts.join("\n")}`;
}

async function notice({ name, version, license, dir }: NpmPackage): Promise<string> {
  const files = (await readdir(dir)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(dir, file), "utf8")));
  const head = `${"-".repeat(72)}\n${name} ${version}, ${license}\n${"-".repeat(72)}\n`;
  return `${head}\n${texts.map((text) => text.trim()).join("\n\n")}\n`;
}

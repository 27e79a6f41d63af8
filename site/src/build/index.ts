import { writePages } from "./write-pages.ts";
import { writeScripts } from "./write-scripts.ts";

/**
 * The whole site: pages, search, and the scripts of diagrams and tracer.
 *
 * @param outDir absolute; what it contained goes
 * @returns false where something is wrong, which is on stderr
 */
export async function buildSite(outDir: string): Promise<boolean> {
  const right = await writePages(outDir);
  await writeScripts(outDir);
  return right;
}

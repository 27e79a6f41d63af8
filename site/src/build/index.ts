import { type WrittenPages, writePages } from "./write-pages.ts";
import { writeScripts } from "./write-scripts.ts";

/**
 * The whole site: pages, search, and the scripts of diagrams and tracer.
 *
 * @param outDir absolute; what it contained goes
 */
export async function buildSite(outDir: string): Promise<WrittenPages> {
  const written = await writePages(outDir);
  await writeScripts(outDir);
  return written;
}

import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "tsup";

/**
 * Builds an app's bundle unless it is newer than every source that may go into it: for tests of the bundle itself.
 *
 * @param app absolute folder of the app
 */
export async function bundleIfStale(app: string): Promise<void> {
  const root = join(import.meta.dirname, "..");
  const patterns = [
    join(app, "{src/**/*.ts,*.ts,package.json}"),
    join(root, "packages/*/{src,build}/**/*.{ts,tsx,css,html}"),
  ];
  const newest = Math.max(...globSync(patterns).map((file) => statSync(file).mtimeMs));
  const built = statSync(join(app, "dist", "main.js"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built >= newest) return;
  const before = process.cwd();
  // tsup reads package.json and entries from there.
  process.chdir(app);
  try {
    await build({ config: join(app, "tsup.config.ts"), silent: true });
  } finally {
    process.chdir(before);
  }
}

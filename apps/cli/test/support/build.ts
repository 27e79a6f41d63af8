import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "tsup";

const agent = join(import.meta.dirname, "..", "..");
const root = join(agent, "..", "..");

/** Builds the bundle unless it is newer than every source that goes into it. */
export default async function setup(): Promise<void> {
  const sources = globSync(["apps/agent/{src/**/*.ts,*.ts,package.json}", "packages/*/src/**/*.ts"], { cwd: root });
  const newest = Math.max(...sources.map((file) => statSync(join(root, file)).mtimeMs));
  const built = statSync(join(agent, "dist", "main.js"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built < newest) await build({ config: join(agent, "tsup.config.ts"), silent: true });
}

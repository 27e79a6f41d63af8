import { join } from "node:path";
import { pnpm, root, runStep } from "./steps.mjs";

/** The agent's bundle. */
export const agentFile = join(root, "apps", "agent", "dist", "main.js");

/** Brings the bundle up to date; says something only when that fails. */
export function buildAgent(packageManager) {
  const turbo = ["exec", "turbo", "run", "build", "--filter=@fairlead/agent", "--output-logs=errors-only"];
  return runStep(pnpm(packageManager, turbo), { quiet: true });
}

import { access, cp, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Names another bundle; in the environment, so that the processes of a run see it, too. */
export const AGENT_VARIABLE = "FAIRLEAD_AGENT";

const built = fileURLToPath(new URL("../../../apps/agent/dist/main.js", import.meta.url));

/** The bundle that FAIRLEAD_AGENT names, undefined where it is empty or not set. */
export function namedAgent(): string | undefined {
  const { [AGENT_VARIABLE]: named = "" } = process.env;
  return named === "" ? undefined : named;
}

/** The agent to run: FAIRLEAD_AGENT, or what `pnpm build` makes. */
export function agentFile(): string {
  return namedAgent() ?? built;
}

/** @throws Error that says how to build it */
export async function requireAgent(): Promise<void> {
  const file = agentFile();
  await access(file).catch(() => {
    throw new Error(`there is no agent at ${file}; build it with: pnpm --filter @fairlead/agent build`);
  });
}

/**
 * Copies what `pnpm build` made to a folder of its own, so that who builds meanwhile does not change what runs. A
 * bundle that FAIRLEAD_AGENT names is taken where it is.
 *
 * @returns the file to run
 */
export async function settleAgent(folder: string): Promise<string> {
  const named = namedAgent();
  if (named !== undefined) return named;
  await cp(dirname(built), folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  return join(folder, basename(built));
}

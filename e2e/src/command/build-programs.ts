import { fileURLToPath } from "node:url";
import { namedAgent } from "@fairlead/lab/agent";
import { hasTool } from "@fairlead/lab/tools/fairlead";
import { execa } from "execa";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Brings the bundles of the agent and of the command line tool up to date. Where FAIRLEAD_AGENT names an agent, nothing
 * that is there is built anew: others may be running it.
 *
 * @throws Error with the compiler's words
 */
export async function buildPrograms(): Promise<void> {
  const named = namedAgent() !== undefined;
  const outdated = [...(named ? [] : ["@fairlead/agent"]), ...(named && (await hasTool()) ? [] : ["@fairlead/cli"])];
  if (outdated.length === 0) return;
  const filters = outdated.map((name) => `--filter=${name}`);
  const args = ["exec", "turbo", "run", "build", ...filters, "--output-logs=errors-only"];
  const result = await execa("pnpm", args, { cwd: root, reject: false, all: true });
  if (result.failed) throw new Error(`${outdated.join(" and ")} do not build:\n${result.all}`);
}

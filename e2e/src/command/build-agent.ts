import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { namedAgent } from "../agent/agent-file.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Brings the agent's bundle up to date; nothing to do where FAIRLEAD_AGENT names one. */
export async function buildAgent(): Promise<void> {
  if (namedAgent() !== undefined) return;
  const args = ["exec", "turbo", "run", "build", "--filter=@fairlead/agent", "--output-logs=errors-only"];
  const result = await execa("pnpm", args, { cwd: root, reject: false, all: true });
  if (result.failed) throw new Error(`the agent does not build:\n${result.all}`);
}

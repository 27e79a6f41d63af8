import { fileURLToPath } from "node:url";
import { execa } from "execa";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Brings the agent's bundle up to date; nothing to do where FAIRLEAD_AGENT names one. */
export async function buildAgent(): Promise<void> {
  const { FAIRLEAD_AGENT = "" } = process.env;
  if (FAIRLEAD_AGENT !== "") return;
  const args = ["exec", "turbo", "run", "build", "--filter=@fairlead/agent", "--output-logs=errors-only"];
  const result = await execa("pnpm", args, { cwd: root, reject: false, all: true });
  if (result.failed) throw new Error(`the agent does not build:\n${result.all}`);
}

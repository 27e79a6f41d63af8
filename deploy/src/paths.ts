import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Absolute paths, without a slash at the end. */
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url)).replace(/\/$/, "");

export const repositoryDir = at("");
export const deployDir = at("deploy");
export const agentDir = at("apps/agent");
export const cliDir = at("apps/cli");
/** What is built ends here; git ignores it. */
export const artifactsDir = at("artifacts");

/** Version of the agent: all @fairlead packages, the image and the chart have it. */
export async function agentVersion(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(agentDir, "package.json"), "utf8"));
  return String(version);
}

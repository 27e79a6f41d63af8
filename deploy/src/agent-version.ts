import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { agentDir } from "./paths.ts";

/** Version of the agent: all @fairlead packages, the image and the chart have it. */
export async function agentVersion(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(agentDir, "package.json"), "utf8"));
  return String(version);
}

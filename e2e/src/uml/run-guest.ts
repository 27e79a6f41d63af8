import { fileURLToPath } from "node:url";
import { boot } from "./boot.ts";
import { compileCache } from "./compile-cache.ts";
import type { Report } from "./guest/suite.ts";

const ROOM = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = fileURLToPath(new URL("guest/main.ts", import.meta.url));

/**
 * Boots once and runs the suites in the guest, on one test ground.
 *
 * @returns problems by the name of the spec
 * @throws Error when the guest did not come to its end, with its last words
 */
export async function runGuest(
  suites: readonly string[],
  timeoutMs: number,
): Promise<ReadonlyMap<string, Report["problems"]>> {
  const node = [process.execPath, "--conditions=@fairlead/source", "--no-warnings"];
  const env = { NODE_COMPILE_CACHE: await compileCache() };
  const { exitCode, stdout, stderr } = await boot({ command: [...node, MAIN, ...suites], cwd: ROOM, env, timeoutMs });
  if (exitCode !== 0) throw new Error(`the guest's tests ended with ${exitCode}: ${stderr}`);
  const reports = stdout.split("\n").flatMap((line): Report[] => (line === "" ? [] : [JSON.parse(line)]));
  return new Map(reports.map(({ name, problems }) => [name, problems]));
}

import { fileURLToPath } from "node:url";
import { boot, guestProgram } from "@fairlead/lab/uml/boot";
import type { Report } from "./suite.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

/**
 * Boots once and runs the suites in the guest, on one test ground; what they say of times goes to standard error.
 *
 * @returns problems by the name of the spec
 */
export async function runGuest(
  suites: readonly string[],
  timeoutMs: number,
): Promise<ReadonlyMap<string, Report["problems"]>> {
  const { exitCode, stdout, stderr } = await boot({ ...(await guestProgram(MAIN, suites)), timeoutMs });
  if (exitCode !== 0) throw new Error(`the guest's tests ended with ${exitCode}: ${stderr}`);
  process.stderr.write(stderr);
  const reports = stdout.split("\n").flatMap((line): Report[] => (line === "" ? [] : [JSON.parse(line)]));
  return new Map(reports.map(({ name, problems }) => [name, problems]));
}

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isRunning, processId } from "./processes.ts";

/** Of folders that tell by their name whose they are; test runs have theirs from @fairlead/tooling. */
const OWNED = /^(?:fairlead-e2e|fairlead-bench|fairlead-tests|\.build)-(\d+)-(\d+)(?:-|$)/;

/** `NAME-PID-START`: whoever finds a folder whose name begins so can tell whether this process still needs it. */
export async function ownPrefix(name: "fairlead-e2e" | "fairlead-bench" | ".build"): Promise<string> {
  // Systems without /proc have no namespaces either, and nobody there asks.
  const { pid, startTime } = await processId(process.pid).catch(() => ({ pid: process.pid, startTime: "0" }));
  return `${name}-${pid}-${startTime}`;
}

/**
 * Removes the folders in `parent` whose processes are gone.
 *
 * @returns their paths
 */
export async function removeAbandoned(parent: string): Promise<readonly string[]> {
  const paths = await abandonedFolders(parent);
  await Promise.all(paths.map((path) => rm(path, { recursive: true, force: true })));
  return paths;
}

async function abandonedFolders(parent: string): Promise<readonly string[]> {
  const names = await readdir(parent).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const [, pid, startTime] = OWNED.exec(name) ?? [];
      if (pid === undefined || startTime === undefined) return undefined;
      return (await isRunning({ pid: Number(pid), startTime })) ? undefined : join(parent, name);
    }),
  );
  return found.filter((path) => path !== undefined);
}

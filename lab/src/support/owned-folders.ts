import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isRunning, processId } from "./processes.ts";

/** Of folders that name their owner; test runs and scripts have theirs from @fairlead/tooling. */
const OWNED = /^(?:fairlead(?:-e2e|-bench|-tests)?|\.build)-(\d+)-(\d+)(?:-|$)/;

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

/** The folders in `parent` that name their owner, such as those of `pnpm e2e`, which has a run's folder in its own. */
export async function ownedFolders(parent: string): Promise<readonly string[]> {
  const names = await readdir(parent).catch(() => []);
  return names.filter((name) => OWNED.test(name)).map((name) => join(parent, name));
}

async function abandonedFolders(parent: string): Promise<readonly string[]> {
  const found = await Promise.all(
    (await ownedFolders(parent)).map(async (path) => {
      const [, pid, startTime = ""] = OWNED.exec(basename(path)) ?? [];
      return (await isRunning({ pid: Number(pid), startTime })) ? undefined : path;
    }),
  );
  return found.filter((path) => path !== undefined);
}

/** What runs and tests have on the machine, and the folders that they left. */

import { readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { isRunning, processId } from "./processes.ts";

/**
 * What a test could leave behind on this machine: child processes of this one, network interfaces, temporary folders.
 */
interface Inventory {
  readonly processes: readonly string[];
  readonly links: readonly string[];
  readonly folders: readonly string[];
}

export async function takeInventory(): Promise<Inventory> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, "utf8");
  return {
    processes: await Promise.all(children.split(" ").filter(Boolean).map(described)),
    links: (await readdir("/sys/class/net")).sort(),
    folders: (await readdir(tmpdir())).filter((name) => name.startsWith(folderPrefix)),
  };
}

/** `NAME-PID-START`: a folder whose name begins so says which process needs it, and whether that still runs. */
export async function ownPrefix(name: "fairlead-e2e" | "fairlead-bench" | ".build"): Promise<string> {
  // Systems without /proc have no namespaces either, and run nothing that needs the prefix.
  const { pid, startTime } = await processId(process.pid).catch(() => ({ pid: process.pid, startTime: "0" }));
  return `${name}-${pid}-${startTime}`;
}

/** Removes the folders in `parent` whose processes are gone. */
export async function removeAbandoned(parent: string): Promise<readonly string[]> {
  const paths = await abandonedFolders(parent);
  await Promise.all(paths.map((path) => rm(path, { recursive: true, force: true })));
  return paths;
}

/** Of folders that name their owner; test runs and scripts have theirs from @fairlead/tooling. */
const OWNED = /^(?:fairlead(?:-e2e|-bench|-tests)?|\.build)-(\d+)-(\d+)(?:-|$)/;

/** The folders in `parent` that name their owner, such as those of `pnpm e2e`, which has a run's folder in its own. */
export async function ownedFolders(parent: string): Promise<readonly string[]> {
  const names = await readdir(parent).catch(() => []);
  return names.filter((name) => OWNED.test(name)).map((name) => join(parent, name));
}

/** Of every folder that this process makes. */
export const folderPrefix = await ownPrefix("fairlead-e2e");

/** Number and command of a process. */
export async function described(pid: string | number): Promise<string> {
  const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return `${pid} ${words.replaceAll("\0", " ").trim()}`;
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

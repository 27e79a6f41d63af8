import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { folderPrefix } from "./folder-prefix.ts";

/**
 * What a test could leave behind on this machine: child processes of this one, network interfaces, temporary folders.
 */
export interface Inventory {
  readonly processes: readonly string[];
  readonly links: readonly string[];
  readonly folders: readonly string[];
}

export async function takeInventory(): Promise<Inventory> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, "utf8");
  return {
    processes: await Promise.all(children.split(" ").filter(Boolean).map(describe)),
    links: (await readdir("/sys/class/net")).sort(),
    folders: (await readdir(tmpdir())).filter((name) => name.startsWith(folderPrefix)),
  };
}

async function describe(pid: string): Promise<string> {
  const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return `${pid} ${words.replaceAll("\0", " ").trim()}`;
}

/** What runs have on the machine, and the folders that they left. */

import { readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { isRunning, type ProcessId, processesWith, processId } from "./processes.ts";

/** What there is of a run on this machine, and what the machine itself has that a run must leave as it is. */
export interface RunInventory {
  /** PID and command of every process that carries the run's mark. */
  readonly processes: readonly string[];
  /** Network namespaces (`net:[INODE]`) that a process or a mount of the run holds. */
  readonly namespaces: readonly string[];
  /** In the folder for temporary files. */
  readonly folders: readonly string[];
  readonly links: readonly string[];
  /** Lines of iptables-save and ip6tables-save in the machine's own network; none where they can't be asked. */
  readonly rules: readonly string[];
}

export interface RunMark {
  /** In the environment of each process: name and value. */
  readonly variable: readonly [name: string, value: string];
  /** Names of temporary folders begin with it. */
  readonly folderPrefix: string;
}

/** @param namespaces those that the run was seen with before; they count for as long as a process holds them */
export async function takeRunInventory(mark: RunMark, namespaces: Iterable<string> = []): Promise<RunInventory> {
  const own = await processesWith(...mark.variable);
  const [described, held, names, links, rules] = await Promise.all([
    Promise.all(own.map(describe)),
    heldNamespaces(own, new Set(namespaces)),
    readdir(tmpdir()),
    readdir("/sys/class/net"),
    Promise.all([rulesOf("iptables-save"), rulesOf("ip6tables-save")]),
  ]);
  return {
    processes: described,
    namespaces: held,
    folders: names.filter((name) => name.startsWith(mark.folderPrefix)),
    links: links.sort(),
    rules: rules.flat(),
  };
}

/**
 * The run's mounts of namespaces, as `net:[INODE] at PATH`. The kernel gives the number of a namespace that is gone to
 * the next one, which another program may have made: only number and path together identify the run's.
 *
 * @param mountinfo text of /proc/self/mountinfo
 * @param held numbers of namespaces in which the run has processes now
 * @param seen what earlier calls gave
 */
export function mountedNamespaces(
  mountinfo: string,
  held: ReadonlySet<string>,
  seen: ReadonlySet<string>,
): readonly string[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [, , , root = "", path = ""] = line.split(" ");
    const mount = `${root} at ${path}`;
    return root.startsWith("net:[") && (held.has(root) || seen.has(mount)) ? [mount] : [];
  });
}

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
    processes: await Promise.all(children.split(" ").filter(Boolean).map(describeChange)),
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

async function describe({ pid }: ProcessId): Promise<string> {
  const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return `${pid} ${words.replaceAll("\0", " ").trim()}`;
}

/** Those of the run's processes, and the mounts of namespaces in which the run was seen. */
async function heldNamespaces(own: readonly ProcessId[], seen: ReadonlySet<string>): Promise<readonly string[]> {
  const machine = await namespaceOf("self");
  const [ofRun, mounts] = await Promise.all([
    Promise.all(own.map(({ pid }) => namespaceOf(String(pid)))),
    readFile("/proc/self/mountinfo", "utf8"),
  ]);
  const held = ofRun.filter((one) => one !== "" && one !== machine);
  return [...new Set([...held, ...mountedNamespaces(mounts, new Set(held), seen)])];
}

function namespaceOf(pid: string): Promise<string> {
  return readlink(`/proc/${pid}/ns/net`).catch(() => "");
}

const runner = createRunner();

/** Without comments, which hold the time, and counters. */
async function rulesOf(tool: string): Promise<readonly string[]> {
  const { stdout } = await runner.run([tool]).catch(() => ({ stdout: "" }));
  return stdout
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => `${tool}: ${line.replace(/ \[\d+:\d+\]$/, "")}`);
}

async function describeChange(pid: string): Promise<string> {
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

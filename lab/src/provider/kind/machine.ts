/** What a cluster of kind has on this machine: groups, containers and their networks. */

import { createHash } from "node:crypto";
import { glob, mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Argv, createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import * as versions from "../../../kind/versions.ts";
import type { ProgramPaths, ProgramSet } from "../../control-plane/programs.ts";
import { isThere } from "../../support/machine.ts";
import { DIE_WITH_PARENT, firstProcessIn, processId, startDaemon } from "../../support/processes.ts";
import { waitUntil } from "../../support/wait-until.ts";

/**
 * Where a kind cluster runs: a Docker daemon of its own in network, mount and process spaces of its own. No packet of a
 * node can leave it, and when it ends, or this process in whatever way, so do all containers, bridges, rules and
 * mounts.
 */
export interface Machine {
  /** Its network only: what runs in it sees this machine's processes and files. */
  readonly network: ContainerNetwork;
  /** Runs programs inside, alongside the daemon. */
  readonly runner: Runner;
  /** Put before an argv, it runs inside. */
  readonly argvPrefix: readonly string[];
  dispose(): Promise<void>;
}

/**
 * @param id of the run: the name of the containers' control group
 * @param folder for the daemon's data and logs; its path is short, as sockets are in it
 * @throws Error with the daemon's log when it does not start
 */
export async function openMachine(id: string, folder: string): Promise<Machine> {
  const putBack = await weighRun(id);
  const namespace = await createNamespace({ whole: true });
  const release = await holdSettings(SETTINGS, process.pid);
  const dispose = async () => {
    await namespace.dispose();
    await putBack();
    await removeGroups(id);
    await release();
  };
  try {
    const runner = await startDocker(namespace, id, folder);
    return { network: networkOf(namespace.pid, namespace.file), runner, argvPrefix: namespace.argvPrefix, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Below each hierarchy of control groups. */
const GROUPS = "/sys/fs/cgroup";

/** As many programs want the processors at once in a cluster of three nodes. */
const PROGRAMS = 32;

/**
 * Gives a run the processor time of many programs: its containers, this process and what this process starts. A control
 * group has that of one program, however many are in it: on a busy machine the API server does not answer in time. And
 * what is outside of it has that of one of all the machine's: a client takes a minute to start.
 *
 * @param groups where hierarchies of control groups are
 * @param placement this process's, as the kernel says it
 * @returns what puts this process back
 */
export async function weighRun(id: string, groups = GROUPS, placement?: string): Promise<() => Promise<void>> {
  const [hierarchy, file, ofOne, line] = (await isThere(join(groups, "cpu")))
    ? (["cpu", "cpu.shares", 1024, /^\d+:(?:.*,)?cpu(?:,.*)?:(.*)$/m] as const)
    : (["", "cpu.weight", 100, /^0::(.*)$/m] as const);
  const [, before = "/"] = line.exec(placement ?? (await readFile("/proc/self/cgroup", "utf8"))) ?? [];
  const own = join(groups, hierarchy, id);
  await mkdir(join(own, "run"), { recursive: true });
  // Where it may not be set, the run is slower.
  const set = (path: string, value: number) => writeFile(path, String(value)).catch(() => {});
  const move = (group: string) => set(join(group, "cgroup.procs"), process.pid);
  await set(join(own, file), PROGRAMS * ofOne);
  await move(join(own, "run"));
  return () => move(join(groups, hierarchy, before));
}

/** The control groups that the containers of a run had: no process is in them anymore. */
export async function removeGroups(id: string, groups = GROUPS): Promise<void> {
  for (const root of await rootsOf(groups)) await removeGroup(join(root, id));
}

/** Where groups begin: one place, or one for each hierarchy. */
async function rootsOf(groups: string): Promise<readonly string[]> {
  const hierarchies = await readdir(groups).catch(() => []);
  return ["", ...hierarchies].map((hierarchy) => join(groups, hierarchy));
}

/** The network of a container that runs on this machine, seen from outside of it. */
export interface ContainerNetwork {
  /** Ends with the container; disposing of it does nothing. */
  readonly namespace: NetworkNamespace;
  /** Runs this machine's programs in it. */
  readonly runner: Runner;
}

const START_MS = 15 * 60_000;

/**
 * @param group a part of its control group's name that no other container has
 * @throws Error when it does not start
 */
export async function containerNetwork(group: string): Promise<ContainerNetwork> {
  const pid = await waitUntil(`a process in ${group}`, START_MS, () => firstProcessIn(group));
  return networkOf(pid);
}

/** The network that a process is in. */
export function networkOf(pid: number, file = `/proc/${pid}/ns/net`): ContainerNetwork {
  const nothing = async () => {};
  const namespace: NetworkNamespace = {
    pid,
    file,
    as: "root",
    argvPrefix: ["nsenter", `--net=${file}`, "--"],
    env: { XTABLES_LOCKFILE: file },
    dispose: nothing,
    [Symbol.asyncDispose]: nothing,
  };
  return { namespace, runner: createRunner({ prefix: namespace.argvPrefix, env: namespace.env }) };
}

const RUNC = fileURLToPath(new URL("../../../kind/runc-allowed.sh", import.meta.url));
const READY_MS = START_MS;

/** The system's own docker before any other one. */
const PATH = `/usr/sbin:/usr/bin:/sbin:/bin:${process.env["PATH"] ?? ""}`;

async function startDocker(namespace: NetworkNamespace, id: string, folder: string): Promise<Runner> {
  const at = (name: string) => join(folder, name);
  await mkdir(at("docker"), { recursive: true });
  const socket = `unix://${at("docker.sock")}`;
  const env = { ...namespace.env, PATH, DOCKER_HOST: socket, HOME: folder };
  const argv: Argv = [
    "dockerd",
    `--host=${socket}`,
    `--data-root=${at("docker")}`,
    `--exec-root=${at("exec")}`,
    `--pidfile=${at("docker.pid")}`,
    `--cgroup-parent=/${id}`,
    "--bridge=none",
    // What is between the nodes is a bridge and nothing else: its rules are the test ground's own.
    ...["--iptables=false", "--ip6tables=false", "--ip-masq=false"],
    `--add-runtime=allowed=${RUNC}`,
    "--default-runtime=allowed",
  ];
  const logFile = at("dockerd.log");
  const daemon = await startDaemon(namespace, { name: "dockerd", argv, logFile, env });
  const runner = machineRunner(namespace, env);
  const ended = daemon.ended.then((how) => {
    throw new Error(`${how}; see ${logFile}`);
  });
  const answers = () =>
    runner.run(["docker", "version"]).then(
      () => true,
      () => undefined,
    );
  await Promise.race([waitUntil("an answer of dockerd", READY_MS, answers), ended]);
  return runner;
}

/** Runs programs inside. nsenter waits for them in a process of its own, and that is what a canceled run kills. */
export function machineRunner(
  { argvPrefix }: Pick<NetworkNamespace, "argvPrefix">,
  env: Readonly<Record<string, string>> = {},
): Runner {
  const prefix = [...argvPrefix, ...DIE_WITH_PARENT, "env", ...assignments(env)];
  return createRunner({ prefix, timeoutMs: 120_000 });
}

function assignments(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

/**
 * Takes back what runs have left that were killed, in whose groups is no process.
 *
 * @param prefix of runs' ids
 * @returns what was done, a line each
 */
export async function takeBack(prefix: string, groups = GROUPS, settings = SETTINGS): Promise<readonly string[]> {
  const names = await Promise.all((await rootsOf(groups)).map((root) => readdir(root).catch(() => [])));
  const ids = [...new Set(names.flat())].filter((name) => name.startsWith(prefix));
  const empty = await Promise.all(ids.map(async (id) => ((await hasProcess(groups, id)) ? [] : [id])));
  for (const id of empty.flat()) await removeGroups(id, groups);
  const lines = empty.flat().map((id) => `${id}: its control groups removed`);
  return [...lines, ...(await restore(settings)).map((name) => `${name}: as before`)];
}

async function hasProcess(groups: string, id: string): Promise<boolean> {
  for await (const file of glob([`${id}/**/cgroup.procs`, `*/${id}/**/cgroup.procs`], { cwd: groups })) {
    if ((await readFile(join(groups, file), "utf8").catch(() => "")) !== "") return true;
  }
  return false;
}

/** From the leaves up: a group that is removed has no other below it. The files in it go by themselves. */
async function removeGroup(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return;
  for (const entry of entries) if (entry.isDirectory()) await removeGroup(join(path, entry.name));
  await rmdir(path).catch(() => {});
}

/** Settings of the whole machine that nodes need or change, by their paths below `root`. */
export interface MachineSettings {
  readonly root: string;
  /** What is enough. */
  readonly raised: Readonly<Record<string, number>>;
  /** What nodes change by themselves. */
  readonly changed: readonly string[];
  /** Folder of the runs that need it: a file for each, named by its process, and what the values were in `BEFORE`. */
  readonly holders: string;
}

const SETTINGS: MachineSettings = {
  root: "/proc/sys",
  // Each systemd and kubelet has dozens of them.
  raised: { "fs/inotify/max_user_instances": 1024 },
  changed: [
    // The kubelet: setupKernelTunables in pkg/kubelet/cm/container_manager_linux.go.
    ...["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"],
    ...["kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"],
    // systemd, by itself and by Debian's /usr/lib/sysctl.d.
    ...["fs/file-max", "fs/nr_open", "kernel/pid_max", "kernel/core_pattern", "kernel/core_uses_pid", "kernel/sysrq"],
    ...["fs/protected_fifos", "fs/protected_regular", "fs/protected_hardlinks", "fs/protected_symlinks"],
  ],
  holders: "/run/fairlead-settings",
};

const BEFORE = "before";

/**
 * Keeps what settings are, and raises those that have to be for this run.
 *
 * @param run number of its process; a run whose process is gone holds nothing
 * @returns what sets them back, once no other run needs them
 */
export async function holdSettings(settings: MachineSettings, run: number): Promise<() => Promise<void>> {
  const { root, raised, changed, holders } = settings;
  const own = join(holders, String(run));
  const before: Record<string, string> = {};
  for (const name of [...Object.keys(raised), ...changed]) {
    const value = await readFile(join(root, name), "utf8").catch(() => undefined);
    if (value !== undefined) before[name] = value;
  }
  await mkdir(holders, { recursive: true });
  // A folder that a killed run left says what they were before it.
  await writeFile(join(holders, BEFORE), JSON.stringify(before), { flag: "wx" }).catch(() => {});
  await writeFile(own, "");
  for (const [name, enough] of Object.entries(raised)) {
    if (Number(before[name]) < enough) await writeFile(join(root, name), String(enough));
  }
  return async () => {
    await rm(own, { force: true });
    await restore(settings);
  };
}

/** Sets back what differs where no run needs it that is there. @returns the names of these settings */
async function restore({ root, holders }: MachineSettings): Promise<readonly string[]> {
  const text = await readFile(join(holders, BEFORE), "utf8").catch(() => undefined);
  const runs = (await readdir(holders).catch(() => [])).filter((name) => name !== BEFORE);
  const there = await Promise.all(runs.map((name) => processId(Number(name)).then(Boolean, () => false)));
  if (text === undefined || there.some(Boolean)) return [];
  const restored: string[] = [];
  for (const [name, before] of Object.entries<string>(JSON.parse(text))) {
    const file = join(root, name);
    if ((await readFile(file, "utf8")) === before) continue;
    await writeFile(file, before);
    restored.push(name);
  }
  await rm(holders, { recursive: true });
  return restored;
}

/** Short and another one whenever what is pinned changes: a part of names in the cache. */
export function fingerprint(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 10);
}

type Programs = Readonly<Record<string, unknown>>;

function set<Name extends string>(name: string, programs: ProgramSet<Name>["programs"]): ProgramSet<Name> {
  return { programs, folder: (version) => `${name}-${version}-${fingerprint(programs satisfies Programs)}` };
}

export const cluster = set<keyof typeof versions.clusterPrograms>("kind", versions.clusterPrograms);
export const suite = set<keyof typeof versions.suitePrograms>("kind-suite", versions.suitePrograms);
export const published = set<keyof typeof versions.publishedPrograms>("kind-published", versions.publishedPrograms);
export const metallb = set<keyof typeof versions.METALLB_PROGRAMS>("kind-metallb", versions.METALLB_PROGRAMS);
export const gatewaySuite = set<keyof typeof versions.GATEWAY_PROGRAMS>("kind-gateways", versions.GATEWAY_PROGRAMS);
export const flannel = set<keyof typeof versions.FLANNEL_PROGRAMS>("kind-flannel", versions.FLANNEL_PROGRAMS);

export type ClusterPrograms = ProgramPaths<keyof typeof versions.clusterPrograms>;

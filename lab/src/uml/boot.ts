/** Boots User-Mode Linux, with this machine's root file system and a program as its first process. */

import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";
import { AGENT_VARIABLE, agentFile } from "../agent.ts";
import { isThere, type Lack, lackingPrograms, lackText, type NeededProgram } from "../support/machine.ts";
import { folderPrefix } from "../support/run-inventory.ts";

/** The guest's way to others: its interface `vec0` is the other end of this tap device. */
export interface GuestLink {
  readonly namespace: NetworkNamespace;
  /** It exists, and no other program has opened it. */
  readonly tap: string;
}

interface GuestOptions {
  /** Run as root in the guest; the machine's files are there in the same places. */
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default 2048. Memory that the guest never touches costs nothing. */
  readonly memoryMiB?: number;
  /** Default: none, and the guest's network leads nowhere. */
  readonly link?: GuestLink;
}

interface BootOptions extends GuestOptions {
  readonly timeoutMs: number;
}

interface GuestResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Boots a guest for one command and waits until it is switched off. */
export async function boot({ timeoutMs, ...options }: BootOptions): Promise<GuestResult> {
  const guest = await startGuest(options);
  let late: string | undefined;
  const timer = setTimeout(() => {
    late = `the command in User-Mode Linux was still running after ${timeoutMs} ms`;
    void guest.kill();
  }, timeoutMs);
  try {
    return await guest.ended;
  } catch (error) {
    // That it ended without a status follows from its being killed.
    throw late === undefined ? error : new Error(late, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** A running guest. It ends with this process, in whatever way that ends, and leaves nothing behind. */
interface Guest {
  /** Resolves with what came of the command, or rejects with the guest's last words when it ended without a status. */
  readonly ended: Promise<GuestResult>;
  /** Switches it off at once; resolves once it is gone. */
  kill(): Promise<void>;
}

const INIT_FILE = "init";

/** Boots User-Mode Linux on this machine's own root file system and starts one command in it. */
export async function startGuest(options: GuestOptions): Promise<Guest> {
  const { command, cwd, env = {}, memoryMiB = 2048, link } = options;
  const folder = await bootFolder({ command, cwd, env });
  const kernel = [
    "linux.uml",
    `mem=${memoryMiB}M`,
    ...["rootfstype=hostfs", "root=/dev/root", "rw", "hostfs=/", "quiet", "panic=-1"],
    `init=${folder.path}/${INIT_FILE}`,
    ...["con=null", "con0=null,fd:1", `uml_dir=${folder.path}/uml`],
    ...(link === undefined ? [] : [`vec0:transport=tap,ifname=${link.tap},depth=128,gro=1`]),
  ];
  const onOneCore = ["taskset", "--cpu-list", String(await coreOfNextGuest())];
  const space = processSpace(link?.namespace);
  const [program = "taskset", ...args] = [...onOneCore, ...space, "sh", "-c", KEEPER, "sh", ...kernel];
  const child = execa(program, args, {
    stdin: "pipe",
    all: true,
    env: { BOOT_FOLDER: folder.path },
    reject: false,
  });
  const ended = child.then(async ({ all }) => {
    await using _ = folder;
    return await resultIn(folder.path, all);
  });
  // A caller that only kills it need not ask how it ended.
  ended.catch(() => {});
  return {
    ended,
    kill: async () => {
      child.kill("SIGKILL");
      await ended.catch(() => {});
    },
  };
}

let taken = 0;

/**
 * The core that a guest is kept on, another for each guest of this process and, as far as chance goes, of others.
 * Whatever a process in the guest asks of its kernel is two processes of the machine that wait for each other in turn:
 * on two cores each turn has to wake an idle one, and all takes several times as long.
 */
export async function coreOfNextGuest(): Promise<number> {
  const cores = coresIn(await readFile("/proc/self/status", "utf8"));
  return cores[(process.pid + taken++) % cores.length] ?? 0;
}

const ALLOWED = /^Cpus_allowed_list:\s*(\S+)$/m;

/** The cores that a process may run on, from its `/proc/PID/status`: a list such as `0-2,5`. */
export function coresIn(status: string): readonly number[] {
  const ranges = ALLOWED.exec(status)?.[1]?.split(",") ?? [];
  return ranges.flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}

const BY = "User-Mode Linux";

const NEEDED: readonly NeededProgram[] = [
  { by: BY, program: "linux.uml", debian: "user-mode-linux" },
  { by: BY, program: "gcc", debian: "gcc" },
  { by: BY, program: "modprobe", debian: "kmod" },
  { by: BY, program: "iptables-legacy", debian: "iptables" },
  { by: BY, program: "ip", debian: "iproute2" },
  { by: BY, program: "ipset", debian: "ipset" },
  { by: BY, program: "ipvsadm", debian: "ipvsadm" },
  { by: BY, program: "conntrack", debian: "conntrack" },
];

/** Debian's folder of the modules for its User-Mode Linux. */
const MODULES_FOLDER = "/usr/lib/uml/modules";

/** What User-Mode Linux lacks here; none: it can run. Starts nothing. */
export async function lacksForUml(): Promise<readonly Lack[]> {
  if (process.arch !== "x64") return [{ what: `${BY} runs only on x86-64, this machine is ${process.arch}` }];
  const programs = await lackingPrograms(NEEDED);
  if (programs.length > 0 || (await isThere(MODULES_FOLDER))) return programs;
  return [{ what: `${BY} needs its modules in ${MODULES_FOLDER}`, debian: "user-mode-linux" }];
}

/** The same as one text; undefined where it can run. */
export async function missingForUml(): Promise<string | undefined> {
  const lacks = await lacksForUml();
  return lacks.length === 0 ? undefined : lackText(lacks);
}

const COMPILED = fileURLToPath(new URL("../../node_modules/.cache/uml-guest", import.meta.url));

const ROOM = fileURLToPath(new URL("../..", import.meta.url));

/**
 * A program of this package as a guest's command. Node starts slowly there: what it compiled is kept from one boot to
 * the next.
 */
export async function guestProgram(
  file: string,
  args: readonly string[],
): Promise<Pick<GuestOptions, "command" | "cwd"> & { readonly env: Readonly<Record<string, string>> }> {
  await mkdir(COMPILED, { recursive: true });
  return {
    command: [process.execPath, "--conditions=@fairlead/source", "--no-warnings", file, ...args],
    cwd: ROOM,
    env: { NODE_COMPILE_CACHE: COMPILED, [AGENT_VARIABLE]: agentFile() },
  };
}

/** What the command leaves in the boot's folder. */
const OUTPUT_FILE = "output";
const ERRORS_FILE = "errors";
const STATUS_FILE = "status";

async function resultIn(folder: string, console: string): Promise<GuestResult> {
  const [stdout = "", stderr = "", status = ""] = await Promise.all(
    [OUTPUT_FILE, ERRORS_FILE, STATUS_FILE].map((file) => readOr(join(folder, file))),
  );
  if (status !== "") return { exitCode: Number(status), stdout, stderr };
  throw new Error(`User-Mode Linux ended before its command: ${lastLines(`${console}\n${stdout}\n${stderr}`)}`);
}

/**
 * User-Mode Linux is many processes, and they may survive the first: in a process space of their own all end with its
 * first one, the keeper. That one waits for the guest, and for the end of its standard input, which comes when this
 * process dies: then it clears up. Signals that all of a terminal's or a shell's processes get are not for it.
 */
function processSpace(joined: NetworkNamespace | undefined): readonly string[] {
  const isRoot = process.getuid?.() === 0 || joined?.as === "user";
  const user = isRoot ? [] : ["--user", "--map-root-user"];
  return [
    ...(joined?.argvPrefix ?? []),
    ...["unshare", ...user, "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--"],
  ];
}

const PRELOAD_FILE = "xstate.so";

const KEEPER = `exec 3<&0
(trap '' HUP INT TERM; cat <&3 > /dev/null; rm -rf "$BOOT_FOLDER"; kill -KILL -1) &
LD_PRELOAD="$BOOT_FOLDER/${PRELOAD_FILE}" "$@" < /dev/null`;

function readOr(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-20).join("\n");
}

/** A folder with what one boot takes. The guest sees it in the same place. */
interface BootFolder {
  readonly path: string;
  [Symbol.asyncDispose](): Promise<void>;
}

const SOURCE = fileURLToPath(new URL("xstate.c", import.meta.url));

interface InitSettings {
  /** Absolute folder for everything that belongs to this boot. */
  readonly folder: string;
  readonly cwd: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function bootFolder(settings: Omit<InitSettings, "folder">): Promise<BootFolder> {
  const path = await mkdtemp(join(tmpdir(), `${folderPrefix}-uml-`));
  const remove = () => rm(path, { recursive: true, force: true });
  try {
    await Promise.all([
      execa("gcc", ["-O2", "-shared", "-fPIC", "-o", join(path, PRELOAD_FILE), SOURCE]),
      writeFile(join(path, INIT_FILE), initScript({ ...settings, folder: path }), { mode: 0o700 }),
      linkLegacyTools(join(path, "bin")),
      linkModules(join(path, "root")),
    ]);
    return { path, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Its nf_tables has no nat: there `iptables` must be the legacy one for every program that asks for it by that name.
 */
async function linkLegacyTools(bin: string): Promise<void> {
  await mkdir(bin);
  const tools = ["iptables", "ip6tables"].flatMap((tool) => ["", "-save", "-restore"].map((verb) => `${tool}${verb}`));
  await Promise.all(
    tools.map((tool) => symlink(`/usr/sbin/${tool.replace("tables", "tables-legacy")}`, join(bin, tool))),
  );
}

/** The root folder that modprobe takes its modules from. */
async function linkModules(root: string): Promise<void> {
  await mkdir(join(root, "lib", "modules"), { recursive: true });
  const versions = await readdir(MODULES_FOLDER);
  await Promise.all(
    versions.map((version) => symlink(join(MODULES_FOLDER, version), join(root, "lib", "modules", version))),
  );
}

/** What ipvs mode and its test ground need of the kernel. Nothing loads modules by itself in User-Mode Linux. */
const modules: readonly string[] = [
  "ip_vs",
  ...["rr", "wrr", "lc", "wlc", "sh", "dh", "sed", "nq", "lblc", "lblcr", "mh"].map((name) => `ip_vs_${name}`),
  "nf_conntrack",
  "nf_conntrack_netlink",
  "sctp",
  "dummy",
  "veth",
  "bridge",
  "br_netfilter",
  "vxlan",
  "tun",
  ...["filter", "nat", "mangle"].flatMap((table) => [`iptable_${table}`, `ip6table_${table}`]),
  "ipt_REJECT",
  "ip6t_REJECT",
  "nfnetlink_queue",
  ..."nat MASQUERADE REDIRECT NFQUEUE mark comment set conntrack addrtype owner statistic recent tcpudp sctp physdev ipvs nfacct"
    .split(" ")
    .map((name) => `xt_${name}`),
  "ip_set_bitmap_port",
  ...["ip", "ipport", "ipportip", "ipportnet"].map((name) => `ip_set_hash_${name}`),
];

/**
 * The first process of the guest: gets the kernel ready, runs the command with its output in files, leaves its exit
 * status in another and switches off. `modprobe -a` loads everything in one process; what is missing it says itself.
 * What the kernel asks for later comes from the same folder: this machine's `/lib/modules` does not have it, or
 * is not there.
 */
function initScript({ folder, cwd, command, env }: InitSettings): string {
  const at = (name: string) => quoted(`${folder}/${name}`);
  const exports = Object.entries({ ...env, HOME: folder, PATH: `${folder}/bin:${GUEST_PATH}` });
  return `#!/bin/bash
${exports.map(([name, value]) => `export ${name}=${quoted(value)}`).join("\n")}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mkdir -p /run/netns
printf '%s\\n' ${quoted(`#!/bin/sh\nexec /sbin/modprobe -d ${at("root")} "$@"`)} > ${at("modprobe")}
chmod +x ${at("modprobe")}
echo ${at("modprobe")} > /proc/sys/kernel/modprobe
modprobe -d ${at("root")} -a ${modules.join(" ")}
ip link set lo up
cd ${quoted(cwd)} && ${command.map(quoted).join(" ")} > ${at(OUTPUT_FILE)} 2> ${at(ERRORS_FILE)}
echo $? > ${at(STATUS_FILE)}
sync
echo o > /proc/sysrq-trigger
sleep 10
`;
}

const GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

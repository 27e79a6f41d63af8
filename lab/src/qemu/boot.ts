import { copyFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { lackingPrograms, lackText, type NeededProgram } from "../support/machine.ts";
import { folderPrefix } from "../support/run-inventory.ts";
import { type GuestKernel, guestKernel, type KernelVersion } from "./kernel.ts";

const MEMORY_MIB = 768;

/** The programs `count` and `batch`, which count what packets and changes cost. */
export const COUNTING_SOURCES = ["count.c", "batch.c"].map((name) => fileURLToPath(new URL(name, import.meta.url)));

/** What runs in a guest. */
export interface CountOptions extends Omit<InitramfsOptions, "folder" | "kernel"> {
  /** Default 768. */
  readonly memoryMiB?: number;
}

/**
 * One processor, emulated: each instruction takes a nanosecond of the guest's time, whatever else the machine does, and
 * an idle guest does not wait.
 */
const COUNTING = ["-accel", "tcg", "-icount", "shift=0,sleep=off", "-smp", "1"];

const KERNEL = "console=ttyS0 panic=-1 quiet mitigations=off clocksource=tsc tsc=reliable";

/**
 * Boots a guest without a network and runs a script in it.
 *
 * @returns what the script printed, and the kernel as `uname -r` says it
 */
export async function countIn(
  version: KernelVersion,
  { memoryMiB = MEMORY_MIB, ...options }: CountOptions,
): Promise<{ readonly release: string; readonly text: string }> {
  const kernel = await guestKernel(version);
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-qemu-`));
  try {
    const archive = await makeInitramfs({ ...options, kernel, folder });
    const machine = ["-m", String(memoryMiB), "-nic", "none", "-nographic", "-no-reboot"];
    const boot = ["-kernel", kernel.image, "-initrd", archive, "-append", KERNEL];
    const { stdout, stderr } = await execa("qemu-system-x86_64", [...COUNTING, ...machine, ...boot], {
      stdin: "ignore",
      reject: false,
    });
    return { release: kernel.release, text: printed(stdout.replaceAll("\r", ""), stderr) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function printed(console: string, errors: string): string {
  const [, behind] = console.split(`${BEGIN}\n`);
  const [text, status] = (behind ?? "").split(END);
  if (text !== undefined && status?.trim().startsWith("0")) return text;
  throw new Error(`the guest failed: ${`${console}\n${errors}`.trim().split("\n").slice(-20).join("\n")}`);
}

interface InitramfsOptions {
  readonly kernel: GuestKernel;
  /** An empty folder, in which it is made. */
  readonly folder: string;
  /** Modules that are loaded, with those that they need. */
  readonly modules: readonly string[];
  /** Programs of this machine, by name or path, with their libraries; they come to /bin. */
  readonly programs: readonly string[];
  /** C sources of programs that come there as well. */
  readonly sources?: readonly string[];
  /** Files of the guest's folder /guest, by name. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** Folders and files of this machine that it has in the same place. */
  readonly libraries?: readonly string[];
  /** Folders of this machine that come to /guest under these names. */
  readonly folders?: Readonly<Record<string, string>>;
  /** For sh, after the modules are loaded. */
  readonly script: string;
}

/** Around what the script prints. */
const BEGIN = "GUEST-BEGIN";
const END = "GUEST-END";

const FOLDERS = ["bin", "dev", "etc", "guest", "lib/modules", "proc", "run/netns", "sys", "tmp"];

/** Makes the root file system of a guest, which it has in memory. Returns the archive's path. */
async function makeInitramfs(options: InitramfsOptions): Promise<string> {
  const { kernel, folder, sources = [], files, script } = options;
  const root = join(folder, "root");
  for (const name of FOLDERS) await mkdir(join(root, name), { recursive: true });
  await addProgram(root, "/bin/busybox");
  const programs = [
    ...(await Promise.all(sources.map((source) => compiled(source, folder)))),
    ...(await Promise.all(options.programs.map(pathOf))),
  ];
  for (const program of programs) await addProgram(root, program);
  for (const library of options.libraries ?? [])
    await cp(library, join(root, library), { recursive: true, dereference: true });
  const modules = await addModules(root, kernel, options.modules);
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, "guest", name), text);
  for (const [name, from] of Object.entries(options.folders ?? {}))
    await cp(from, join(root, "guest", name), { recursive: true });
  await writeFile(join(root, "guest/script"), `${programs.flatMap(preferred).join("\n")}\n${script}\n`);
  await writeFile(join(root, "init"), initScript(modules), { mode: 0o755 });
  await symlink("busybox", join(root, "bin/sh"));
  const { stdout: list } = await execa("find", [".", "-mindepth", "1"], { cwd: root });
  const archive = join(folder, "initramfs");
  await execa("cpio", ["--quiet", "-o", "-H", "newc", "-O", archive], { cwd: root, input: list });
  return archive;
}

/**
 * Busybox's shell prefers its own commands to programs of the same name, but not to functions. None of its commands has
 * a name with a dash that programs have here.
 */
function preferred(program: string): readonly string[] {
  const name = basename(program);
  return name.includes("-") ? [] : [`${name}() { /bin/${name} "$@"; }`];
}

function initScript(modules: readonly string[]): string {
  return `#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/sbin:/usr/bin
/bin/busybox --install -s /bin 2> /dev/null
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mkdir -p /run/netns
echo 0 > /proc/sys/kernel/printk
${modules.map((name) => `insmod /lib/modules/${name}`).join("\n")}
echo ${BEGIN}
sh -e /guest/script 2>&1
echo ${END} $?
poweroff -f
`;
}

async function compiled(source: string, folder: string): Promise<string> {
  const program = join(folder, basename(source, ".c"));
  await execa("gcc", ["-O2", "-static", "-o", program, source]);
  return program;
}

async function pathOf(program: string): Promise<string> {
  if (program.startsWith("/")) return program;
  const { stdout } = await execa("which", [program], { env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });
  return stdout.trim();
}

async function addProgram(root: string, file: string): Promise<void> {
  await copyFile(file, join(root, "bin", basename(file)));
  const { stdout } = await execa("ldd", [file], { reject: false });
  for (const [library] of stdout.matchAll(/\/\S+/g)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(library, join(root, library));
  }
}

/** Those that are named and what they need, in the order in which they can be loaded; what is built in is left out. */
async function addModules(
  root: string,
  { modules }: GuestKernel,
  names: readonly string[],
): Promise<readonly string[]> {
  const needs = new Map(
    (await readFile(join(modules, "modules.dep"), "utf8")).split("\n").map((line) => {
      const [file = "", ...needed] = line.split(/:? /);
      return [file.replace(/:$/, ""), needed.filter(Boolean)];
    }),
  );
  const fileOf = (name: string) => [...needs.keys()].find((file) => basename(file).startsWith(`${name}.ko`));
  const files = new Set<string>();
  for (const name of names) {
    const file = fileOf(name);
    if (file === undefined) continue;
    // The last one that is named needs none of the others.
    for (const needed of (needs.get(file) ?? []).toReversed()) files.add(needed);
    files.add(file);
  }
  for (const file of files) {
    const { stdout } = await execa("xz", ["--decompress", "--stdout", "--force", join(modules, file)], {
      encoding: "buffer",
    });
    await writeFile(join(root, "lib/modules", nameOf(file)), stdout);
  }
  return [...files].map(nameOf);
}

function nameOf(file: string): string {
  return basename(file).replace(/\.xz$/, "");
}

const BY = "counting in QEMU";

const NEEDED: readonly NeededProgram[] = [
  { by: BY, program: "qemu-system-x86_64", debian: "qemu-system-x86" },
  { by: BY, program: "dpkg-deb", debian: "dpkg" },
  { by: BY, program: "busybox", debian: "busybox-static" },
  { by: BY, program: "cpio", debian: "cpio" },
  { by: BY, program: "xz", debian: "xz-utils" },
  { by: BY, program: "depmod", debian: "kmod" },
  { by: BY, program: "gcc", debian: "gcc" },
  { by: BY, program: "nft", debian: "nftables" },
  { by: BY, program: "ip", debian: "iproute2" },
  { by: BY, program: "conntrack", debian: "conntrack" },
];

/** Programs of some guests, and Debian's package of each. */
const OF_SOME_GUESTS = {
  "iptables-legacy": "iptables",
  nfacct: "nfacct",
  ipset: "ipset",
  ipvsadm: "ipvsadm",
} as const;

/** What counting lacks here, as a text; undefined: nothing. `more`: programs that the guests run in addition. */
export async function missingForCounting(
  more: readonly (keyof typeof OF_SOME_GUESTS)[] = [],
): Promise<string | undefined> {
  if (process.arch !== "x64") return `${BY} takes Debian's kernels for x86-64, this machine is ${process.arch}`;
  const lacks = await lackingPrograms([
    ...NEEDED,
    ...more.map((program) => ({ by: BY, program, debian: OF_SOME_GUESTS[program] })),
  ]);
  return lacks.length > 0 ? lackText(lacks) : undefined;
}

/** Kernel modules, and the kernel's version. */

import { access, readFile } from "node:fs/promises";
import { release } from "node:os";
import { join } from "node:path";
import { CommandError, type Runner } from "./runner.ts";

/** Whether a module is there, or why it is not. */
export type ModuleResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Kernel modules. */
export interface Modules {
  /** Loads it unless the kernel has it, loaded or built in as far as that can be seen. Says why where that fails. */
  load(name: string): Promise<ModuleResult>;
}

/** Where modules are looked for. */
export interface ModulesOptions {
  /** Where /sys and /lib are. Default "/". */
  readonly root?: string;
  /** Kernel release, whose folder in /lib/modules is looked at. Default: the running one. */
  readonly release?: string;
}

/** Looks into /sys/module and modules.builtin, and loads with modprobe. */
export function createModules(runner: Runner, options: ModulesOptions = {}): Modules {
  const root = options.root ?? "/";
  const builtin = join(root, "lib/modules", options.release ?? release(), "modules.builtin");
  return {
    async load(name) {
      const plain = name.replaceAll("-", "_");
      const isThere = (await exists(join(root, "sys/module", plain))) || (await builtinNames(builtin)).has(plain);
      return isThere ? { ok: true } : modprobe(runner, name);
    },
  };
}

/** The version of the running kernel. */
export interface KernelVersion {
  /** `6` of 6.1.0. */
  readonly major: number;
  /** `1` of 6.1.0. */
  readonly minor: number;
  /** `6.1.0-18-amd64` */
  readonly release: string;
}

/** The running kernel's version; 0.0 where its release says none. */
export function kernelVersion(of: string = release()): KernelVersion {
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(of) ?? [];
  return { major: Number(major), minor: Number(minor), release: of };
}

/** Whether a version is this one or a later one. */
export function isAtLeast(version: KernelVersion, major: number, minor: number): boolean {
  return version.major === major ? version.minor >= minor : version.major > major;
}

async function modprobe(runner: Runner, name: string): Promise<ModuleResult> {
  try {
    await runner.run(["modprobe", "--", name]);
    return { ok: true };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const why = error.reason === "not-found" ? "modprobe is not installed (apt-get install kmod)" : error.stderr;
    return { ok: false, reason: `kernel module ${name} is missing: ${why === "" ? error.message : why}` };
  }
}

/** `kernel/net/netfilter/xt_set.ko` a line; both - and _ stand for the same. */
async function builtinNames(file: string): Promise<ReadonlySet<string>> {
  const text = await readFile(file, "utf8").catch(() => "");
  return new Set(Array.from(text.matchAll(/([^/\n]+)\.ko/g), ([, name = ""]) => name.replaceAll("-", "_")));
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

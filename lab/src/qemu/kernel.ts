import { access, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { cacheFolder } from "../control-plane/program-set.ts";

/** Debian's kernels for virtual machines, by their version: packages that name the newest one. */
export const KERNELS = { "6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64" } as const;
export type KernelVersion = keyof typeof KERNELS;

export interface GuestKernel {
  /** As `uname -r` says it. */
  readonly release: string;
  readonly image: string;
  /** With `modules.dep` and the modules that it names. */
  readonly modules: string;
}

/**
 * A kernel from its package, which is unpacked and not installed; the next call finds it in the cache.
 *
 * @throws Error when apt-get cannot download it
 */
export async function guestKernel(version: KernelVersion): Promise<GuestKernel> {
  const { stdout } = await execa("apt-cache", ["depends", KERNELS[version]]);
  const name = /Depends: (linux-image-\S+)/.exec(stdout)?.[1];
  if (name === undefined) throw new Error(`apt-cache knows no package ${KERNELS[version]}; run apt-get update`);
  const folder = cacheFolder(name);
  if (!(await exists(folder))) await unpack(name, folder);
  const release = name.replace("linux-image-", "");
  return { release, image: join(folder, "boot", `vmlinuz-${release}`), modules: join(folder, "lib/modules", release) };
}

async function unpack(name: string, folder: string): Promise<void> {
  const parent = join(folder, "..");
  await mkdir(parent, { recursive: true });
  const temporary = await mkdtemp(join(parent, ".kernel-"));
  try {
    await execa("apt-get", ["download", name], { cwd: temporary });
    const [archive = ""] = await readdir(temporary);
    const made = join(temporary, "root");
    await execa("dpkg-deb", ["-x", join(temporary, archive), made]);
    await execa("depmod", ["-b", made, name.replace("linux-image-", "")]);
    await rename(made, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

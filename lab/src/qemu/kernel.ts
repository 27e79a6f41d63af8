import { access, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { cacheFolder } from "../control-plane/programs.ts";
import { KERNELS, type KernelVersion } from "./kernel-versions.ts";
import { downloadPinned, PINNED, type PinnedPackage } from "./pinned.ts";

export interface GuestKernel {
  /** As `uname -r` says it. */
  readonly release: string;
  readonly image: string;
  /** With `modules.dep` and the modules that it names. */
  readonly modules: string;
}

/**
 * A kernel from its package, which is unpacked and not installed; the next call finds it in the cache. The newest one
 * that apt knows, or the pinned one.
 *
 * @throws Error when it cannot be downloaded
 */
export async function guestKernel(version: KernelVersion): Promise<GuestKernel> {
  const { stdout } = await execa("apt-cache", ["depends", KERNELS[version]], { reject: false });
  const newest = /Depends: (linux-image-\S+)/.exec(stdout ?? "")?.[1];
  const pinned = PINNED[version];
  const name = newest ?? pinned.name;
  const folder = cacheFolder(name);
  if (!(await exists(folder))) await unpack(name, folder, newest === undefined ? pinned : undefined);
  const release = name.replace("linux-image-", "");
  return { release, image: join(folder, "boot", `vmlinuz-${release}`), modules: join(folder, "lib/modules", release) };
}

/** @param pinned absent: apt downloads it */
async function unpack(name: string, folder: string, pinned: PinnedPackage | undefined): Promise<void> {
  const parent = join(folder, "..");
  await mkdir(parent, { recursive: true });
  const temporary = await mkdtemp(join(parent, ".kernel-"));
  try {
    if (pinned === undefined) await execa("apt-get", ["download", name], { cwd: temporary });
    else await writeFile(join(temporary, `${name}.deb`), await downloadPinned(pinned));
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

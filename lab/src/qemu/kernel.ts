import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { cacheFolder } from "../control-plane/programs.ts";
import { isThere } from "../support/machine.ts";

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
 */
export async function guestKernel(version: KernelVersion): Promise<GuestKernel> {
  const { stdout } = await execa("apt-cache", ["depends", KERNELS[version]], { reject: false });
  const newest = /Depends: (linux-image-\S+)/.exec(stdout ?? "")?.[1];
  const pinned = PINNED[version];
  const name = newest ?? pinned.name;
  const folder = cacheFolder(name);
  if (!(await isThere(folder))) await unpack(name, folder, newest === undefined ? pinned : undefined);
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

interface PinnedPackage {
  readonly name: string;
  /** Below the archive's root. */
  readonly path: string;
  readonly sha256: string;
}

/** For machines whose apt does not know Debian's kernels, such as Ubuntu's. */
export const PINNED: Readonly<Record<KernelVersion, PinnedPackage>> = {
  "6.1": {
    name: "linux-image-6.1.0-56-cloud-amd64",
    path: "pool/updates/main/l/linux-signed-amd64/linux-image-6.1.0-56-cloud-amd64_6.1.192-2_amd64.deb",
    sha256: "e7d02b943971edcb8790e256c02cfab3bca6c3d37c1bf25392a57c71300615ee",
  },
  "6.12": {
    name: "linux-image-6.12.117+deb12-cloud-amd64",
    path: "pool/updates/main/l/linux-signed-6.12-amd64/linux-image-6.12.117+deb12-cloud-amd64_6.12.117-1~deb12u1_amd64.deb",
    sha256: "5195b288dec79e2981d6b84457f38b7ce7310a2d702930ec7d07209c7f78ce37",
  },
};

/** The archive lets go of versions that newer ones replace; its snapshots do not. */
const ROOTS = [
  "http://deb.debian.org/debian-security",
  "https://snapshot.debian.org/archive/debian-security/20261123T000000Z",
];

/** Gives what a URL leads to. */
export type Download = (url: string) => Promise<Uint8Array>;

export async function downloadPinned(
  { name, path, sha256 }: PinnedPackage,
  download: Download = overHttp,
): Promise<Uint8Array> {
  const failures: string[] = [];
  for (const root of ROOTS) {
    const url = `${root}/${path}`;
    try {
      const bytes = await download(url);
      const found = createHash("sha256").update(bytes).digest("hex");
      if (found === sha256) return bytes;
      failures.push(`${url}: SHA-256 is ${found}, expected ${sha256}`);
    } catch (error) {
      failures.push(`${url}: ${error instanceof Error ? error.message : error}`);
    }
  }
  throw new Error(`cannot download ${name}: ${failures.join("; ")}`);
}

async function overHttp(url: string): Promise<Uint8Array> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.bytes();
}

/** Debian's kernels for virtual machines, by their version: packages that name the newest one. */
export const KERNELS = { "6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64" } as const;
export type KernelVersion = keyof typeof KERNELS;

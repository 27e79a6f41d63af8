import { mkdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DEBIAN_RELEASE } from "@fairlead/deploy/image";
import type { Runner } from "@fairlead/kernel";
import { cacheFolder } from "../../../control-plane/program-set.ts";
import { isThere } from "../../../support/is-there.ts";
import { fingerprint } from "../programs.ts";

const INSTALL_MS = 20 * 60_000;
const LEFT_OUT = ["doc", "man", "locale"].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`);

/**
 * A root file system of Debian packages, installed, as a tar. Nothing is done where the file is there.
 *
 * @throws CommandError when mmdebstrap is missing, or a package cannot be had
 */
export async function debianRoot(runner: Runner, packages: readonly string[], file: string): Promise<void> {
  if (await isThere(file)) return;
  await mkdir(dirname(file), { recursive: true });
  const part = `${file}.part`;
  const options = ["--quiet", "--variant=minbase", "--format=tar", `--include=${packages.join(",")}`, ...LEFT_OUT];
  await runner.run(["mmdebstrap", ...options, DEBIAN_RELEASE, part], { timeoutMs: INSTALL_MS });
  await rename(part, file);
}

/**
 * Where a root file system is kept. Debian's packages are of no version that is pinned: it stays until somebody removes
 * it.
 */
export function rootFile(name: string, packages: readonly string[]): string {
  return cacheFolder(join("kind-debian", `${name}-${fingerprint(packages)}.tar`));
}

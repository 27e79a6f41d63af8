import { access, rename } from "node:fs/promises";
import { DEBIAN_RELEASE } from "@fairlead/deploy/image";
import type { Runner } from "@fairlead/kernel";

const INSTALL_MS = 20 * 60_000;
const LEFT_OUT = ["doc", "man", "locale"].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`);

/**
 * A root file system of Debian packages, installed, as a tar. Nothing is done where the file is there.
 *
 * @throws CommandError when mmdebstrap is missing, or a package cannot be had
 */
export async function debianRoot(runner: Runner, packages: readonly string[], file: string): Promise<void> {
  if (await isThere(file)) return;
  const part = `${file}.part`;
  const options = ["--quiet", "--variant=minbase", "--format=tar", `--include=${packages.join(",")}`, ...LEFT_OUT];
  await runner.run(["mmdebstrap", ...options, DEBIAN_RELEASE, part], { timeoutMs: INSTALL_MS });
  await rename(part, file);
}

export function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

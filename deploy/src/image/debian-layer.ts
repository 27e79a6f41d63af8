import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { deployDir } from "../paths.ts";
import type { Arch } from "./arch.ts";

/** The release that the image is made of; its tools are the ones that the tests run with. */
export const DEBIAN_RELEASE = "bookworm";

/** What a proxy never reads. Copyright files stay: the licenses ask for it. */
const LEFT_OUT = ["/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/bash-completion/*"];
const DOCUMENTS = ["path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"];

/** Left by the way the folder is made, or made anew for each container. */
const NOT_PACKED = ["./dev/*", "./etc/apt", "./etc/dpkg", "./etc/hostname", "./etc/resolv.conf", "./etc/fstab"].concat([
  "./var/lib/apt",
  "./var/cache/apt",
  "./var/lib/dpkg/updates",
  "./var/lib/dpkg/info",
]);

export interface DebianOptions {
  readonly arch: Arch;
  /** Seconds since the epoch. */
  readonly epoch: number;
  /** Where mmdebstrap's tar goes for a moment. */
  readonly scratch: string;
}

/**
 * Fills a folder with Debian packages: apt resolves what they depend on, the archives are unpacked, and no script of
 * them runs. So any architecture can be made on any other, without root.
 *
 * @throws CommandError when mmdebstrap is missing, or a package cannot be had
 */
export async function fillWithDebian(runner: Runner, dir: string, options: DebianOptions): Promise<void> {
  const tar = join(options.scratch, "debian.tar");
  const packages = (await readFile(join(deployDir, "image/packages.txt"), "utf8")).trim().split(/\s+/);
  await runner.run(mmdebstrap(packages, tar, options), { timeoutMs: 600_000 });
  const except = NOT_PACKED.map((path) => `--exclude=${path}`);
  await runner.run(["tar", "-xf", tar, "-C", dir, "--no-same-owner", ...except], { timeoutMs: 120_000 });
  await chooseIptables(dir);
  await writeFile(join(dir, "etc/passwd"), "root:x:0:0:root:/root:/usr/sbin/nologin\n");
  await writeFile(join(dir, "etc/group"), "root:x:0:\n");
  for (const folder of ["run/fairlead", "var/lib/fairlead"]) await mkdir(join(dir, folder), { recursive: true });
}

function mmdebstrap(packages: readonly string[], tar: string, { arch, epoch }: DebianOptions) {
  return [
    "env",
    `SOURCE_DATE_EPOCH=${epoch}`,
    "mmdebstrap",
    "--quiet",
    "--variant=extract",
    "--format=tar",
    `--architectures=${arch}`,
    `--include=${packages.join(",")}`,
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    `--extract-hook=${join(deployDir, "image/record-packages.sh")}`,
    ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
    ...DOCUMENTS.map((option) => `--dpkgopt=${option}`),
    DEBIAN_RELEASE,
    tar,
    ...SOURCES,
  ] as const;
}

const KEYRING = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
const SOURCES = [
  `deb ${KEYRING} http://deb.debian.org/debian ${DEBIAN_RELEASE} main`,
  `deb ${KEYRING} http://deb.debian.org/debian ${DEBIAN_RELEASE}-updates main`,
  `deb ${KEYRING} http://deb.debian.org/debian-security ${DEBIAN_RELEASE}-security main`,
];

/**
 * The plain names, for people who look around in the container, are the nft variant, as update-alternatives would
 * choose. The agent itself calls the variant that the host uses by its full name.
 */
async function chooseIptables(dir: string): Promise<void> {
  for (const program of ["iptables", "ip6tables"]) {
    for (const tool of ["", "-save", "-restore"]) {
      await symlink("xtables-nft-multi", join(dir, "usr/sbin", `${program}${tool}`));
    }
  }
}

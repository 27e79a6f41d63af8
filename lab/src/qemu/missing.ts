import { execa } from "execa";
import { lackingPrograms, lackText, type NeededProgram } from "../support/lack.ts";
import { KERNELS } from "./kernel.ts";

const BY = "counting in QEMU";

const NEEDED: readonly NeededProgram[] = [
  { by: BY, program: "qemu-system-x86_64", debian: "qemu-system-x86" },
  { by: BY, program: "apt-get", debian: "apt" },
  { by: BY, program: "busybox", debian: "busybox-static" },
  { by: BY, program: "cpio", debian: "cpio" },
  { by: BY, program: "xz", debian: "xz-utils" },
  { by: BY, program: "depmod", debian: "kmod" },
  { by: BY, program: "gcc", debian: "gcc" },
  { by: BY, program: "nft", debian: "nftables" },
  { by: BY, program: "ip", debian: "iproute2" },
];

/** What counting lacks here, as a text; undefined: nothing. */
export async function missingForCounting(): Promise<string | undefined> {
  if (process.arch !== "x64") return `${BY} takes Debian's kernels for x86-64, this machine is ${process.arch}`;
  const lacks = await lackingPrograms(NEEDED);
  if (lacks.length > 0) return lackText(lacks);
  const known = await execa("apt-cache", ["show", KERNELS["6.12"]], { reject: false });
  return known.exitCode === 0 ? undefined : `${BY} takes Debian's package ${KERNELS["6.12"]}, which apt does not know`;
}

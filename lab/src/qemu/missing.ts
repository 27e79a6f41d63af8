import { lackingPrograms, lackText, type NeededProgram } from "../support/lack.ts";

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

/** What counting lacks here, as a text; undefined: nothing. */
export async function missingForCounting(): Promise<string | undefined> {
  if (process.arch !== "x64") return `${BY} takes Debian's kernels for x86-64, this machine is ${process.arch}`;
  const lacks = await lackingPrograms(NEEDED);
  return lacks.length > 0 ? lackText(lacks) : undefined;
}

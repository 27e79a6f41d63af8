import { lackingPrograms, lackText, type NeededProgram } from "../support/machine.ts";

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

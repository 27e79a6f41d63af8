import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Which kernel API the iptables tools of a run speak to. */
export type Variant = "nft" | "legacy";

const SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** Debian's names of everything that a proxy may start, but for iptables'. */
const OTHERS = ["conntrack", "ipset", "ipvsadm", "nfacct", "nft"] as const;

/** The PATH of a folder in which plain `iptables` is of this variant. */
export async function toolPath(folder: string, variant: Variant): Promise<string> {
  await mkdir(folder, { recursive: true });
  await Promise.all(
    [...iptablesTools(variant)].map(([name, program]) => symlink(`/usr/sbin/${program}`, join(folder, name))),
  );
  return `${folder}:${SYSTEM_PATH}`;
}

/**
 * The same, in which each call leaves a line in `calls` of `records`, and the input of each restore a file
 * `payload.PID`. Slower than the tools by themselves: nothing is timed with it.
 */
export async function recordingPath(folder: string, variant: Variant, records: string): Promise<string> {
  await Promise.all([mkdir(folder, { recursive: true }), mkdir(records, { recursive: true })]);
  const programs = new Map([...iptablesTools(variant), ...OTHERS.map((name) => [name, name] as const)]);
  await Promise.all(
    [...programs].map(([name, program]) =>
      writeFile(join(folder, name), recorder(`/usr/sbin/${program}`, records), { mode: 0o755 }),
    ),
  );
  return `${folder}:${SYSTEM_PATH}`;
}

/** By the name that it is called by. */
function iptablesTools(variant: Variant): ReadonlyMap<string, string> {
  const verbs = ["", "-save", "-restore"];
  return new Map(
    ["iptables", "ip6tables"].flatMap((family) =>
      verbs.flatMap((verb) => [
        [`${family}${verb}`, `${family}-${variant}${verb}`] as const,
        [`${family}-${variant}${verb}`, `${family}-${variant}${verb}`] as const,
      ]),
    ),
  );
}

function recorder(program: string, records: string): string {
  return `#!/bin/sh
echo "$$ ${program} $*" >> '${records}/calls'
case "${program} $*" in
  *restore*|*" -f -") tee '${records}/payload.'$$ | ${program} "$@" ;;
  *) exec ${program} "$@" ;;
esac
`;
}

import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isThere } from "../support/is-there.ts";

const TOOL = "iptables-nft-restore";

/** A folder for the head of PATH, whose iptables-nft-restore is killed half way when it is asked to. */
export interface HalfRestore {
  readonly path: string;
  /** The next restore is killed. */
  arm(): Promise<void>;
  /** Whether that is still to come. */
  armed(): Promise<boolean>;
}

/**
 * The real one gets the payload up to its first COMMIT and the head of the next table, and is killed while it waits for
 * more.
 */
const script = (flag: string) => `#!/bin/sh
PATH=/usr/sbin:/sbin:/usr/bin:/bin
case "$*" in *--version*) exec ${TOOL} "$@";; esac
rm "${flag}" 2>/dev/null || exec ${TOOL} "$@"
exec 3<&0
{ sed '/^COMMIT$/q' <&3; echo '*nat'; sleep 2; } | ${TOOL} "$@" &
victim=$!
sleep 0.2
kill -9 "$victim"
kill -9 $$
`;

/** @param folder an existing one, to be removed by the caller */
export async function halfRestore(folder: string): Promise<HalfRestore> {
  const bin = join(folder, "bin");
  const flag = join(folder, "kill-the-next-restore");
  await mkdir(bin);
  await writeFile(join(bin, TOOL), script(flag));
  await chmod(join(bin, TOOL), 0o755);
  return {
    path: `${bin}:${process.env["PATH"] ?? ""}`,
    arm: () => writeFile(flag, ""),
    armed: () => isThere(flag),
  };
}

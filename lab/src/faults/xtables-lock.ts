import { once } from "node:events";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";

/** The lock of iptables' legacy tools, held. */
export interface HeldLock extends AsyncDisposable {
  release(): Promise<void>;
}

/** Prints a line once it has the lock, and keeps it until standard input ends, with this process at the latest. */
const HOLD = ["sh", "-c", "echo held && exec cat"];

/**
 * Holds the lock of a namespace until it is released.
 *
 * @throws Error when it cannot be had
 */
export async function holdXtablesLock({ argvPrefix, env }: NetworkNamespace): Promise<HeldLock> {
  const [program = "nsenter", ...prefix] = argvPrefix;
  const child = execa(program, [...prefix, "flock", env["XTABLES_LOCKFILE"] ?? "", ...HOLD], {
    stdin: "pipe",
    buffer: { stdout: false, stderr: true },
    reject: false,
  });
  const failed = child.then(({ stderr }): never => {
    throw new Error(`the lock cannot be had: ${stderr}`);
  });
  await Promise.race([once(child.stdout, "data"), failed]);
  const release = async () => {
    child.stdin.end();
    await child;
  };
  return { release, [Symbol.asyncDispose]: release };
}

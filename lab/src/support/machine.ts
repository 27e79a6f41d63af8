/** What this machine has, and what it lacks for a run. */

import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { errorText, IP_FAMILIES } from "@fairlead/base";
import { createRunner, openIptables } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";

/**
 * Why the test ground cannot run here, undefined where it can: it takes network namespaces, ip and iptables of both
 * families. Makes a namespace to find out.
 */
export async function missingHere(): Promise<string | undefined> {
  try {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    await runner.run(["ip", "link", "add", "probe", "type", "veth", "peer", "name", "eborp"]);
    for (const family of IP_FAMILIES) {
      const client = await openIptables(runner, { family });
      await client.save("nat");
    }
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

/** Whether this kernel has IPVS, or a module of it that can be loaded. Loads nothing. */
export async function hasIpvs(): Promise<boolean> {
  if (await isThere("/proc/net/ip_vs")) return true;
  return createRunner()
    .run(["modprobe", "--dry-run", "--quiet", "ip_vs"])
    .then(
      () => true,
      () => false,
    );
}

const FOLDERS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Whether this machine has a program of that name. */
export async function isProgram(program: string): Promise<boolean> {
  const found = await Promise.allSettled(FOLDERS.map((folder) => access(join(folder, program), constants.X_OK)));
  return found.some(({ status }) => status === "fulfilled");
}

/** What this machine lacks for a run. */
export interface Lack {
  /** One line: what needs what, or why it cannot be. */
  readonly what: string;
  /** The Debian package that brings it; absent where none does. */
  readonly debian?: string;
}

export interface NeededProgram {
  /** What runs it: `ovn`, `kind`. */
  readonly by: string;
  readonly program: string;
  readonly debian: string;
}

/** Those of the programs that this machine does not have. */
export async function lackingPrograms(
  needed: readonly NeededProgram[],
  isThere: (program: string) => Promise<boolean> = isProgram,
): Promise<readonly Lack[]> {
  const there = await Promise.all(needed.map(({ program }) => isThere(program)));
  return needed
    .filter((_, index) => !there[index])
    .map(({ by, program, debian }) => ({ what: `${by} needs ${program}`, debian }));
}

/** A lack in words as a list; empty where nothing is missing. */
export async function lackOf(missing: Promise<string | undefined>): Promise<readonly Lack[]> {
  const what = await missing;
  return what === undefined ? [] : [{ what }];
}

export function lackText(lacks: readonly Lack[]): string {
  const packages = new Set(lacks.flatMap(({ debian }) => debian ?? []));
  const install = packages.size === 0 ? [] : [`apt-get install -y --no-install-recommends ${[...packages].join(" ")}`];
  return [...lacks.map(({ what }) => what), ...install].join("\n");
}

/** Whether there is such a file or folder, and one may look at it. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** The iptables of a family, of whichever variant the machine prefers. */
export const PLAIN_TOOL = { IPv4: "iptables", IPv6: "ip6tables" } as const;

import type { IPFamily } from "../family.ts";
import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";
import { IptablesError } from "./error.ts";
import type { Variant } from "./variant.ts";

/** The programs of one family and variant. */
export interface Tools {
  readonly variant: Variant;
  readonly iptables: string;
  readonly save: string;
  readonly restore: string;
  /** `1.8.9` */
  readonly version: string;
}

/** The tools of a variant, looked for when the first of them is needed: that takes a process. */
export interface ToolsOf {
  readonly variant: Variant;
  /** @throws IptablesError of kind "not-installed" or "too-old" */
  readonly find: () => Promise<Tools>;
}

/** `iptables-restore -w` waits for its lock and names failing lines from here on. */
const OLDEST = [1, 8, 7] as const;

/**
 * The tools of a variant: `iptables-nft` or `iptables-legacy` where there are both, else a plain `iptables` that is of
 * it.
 *
 * @returns undefined where there are none
 * @throws IptablesError of kind "too-old"
 */
export async function findTools(runner: Runner, family: IPFamily, variant: Variant): Promise<Tools | undefined> {
  const plain = family === "IPv4" ? "iptables" : "ip6tables";
  for (const program of [`${plain}-${variant}`, plain]) {
    const found = await readVersion(runner, program);
    if (found === undefined || found.variant !== variant) continue;
    if (isOlder(found.version)) {
      throw new IptablesError(
        "too-old",
        `${program} ${found.version} is too old, at least ${OLDEST.join(".")} is needed`,
      );
    }
    return { ...found, iptables: program, save: `${program}-save`, restore: `${program}-restore` };
  }
  return undefined;
}

/** `iptables v1.8.9 (nf_tables)`; before 1.8 there was no variant in it, and it was legacy. */
async function readVersion(runner: Runner, program: string): Promise<Pick<Tools, "variant" | "version"> | undefined> {
  try {
    const { stdout } = await runner.run([program, "--version"]);
    const [, version, api] = /v(\d+(?:\.\d+)+)(?: \((\w+)\))?/.exec(stdout) ?? [];
    return version === undefined ? undefined : { version, variant: api === "nf_tables" ? "nft" : "legacy" };
  } catch (error) {
    if (error instanceof CommandError && error.reason === "not-found") return undefined;
    throw error;
  }
}

function isOlder(version: string): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, least] of OLDEST.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}

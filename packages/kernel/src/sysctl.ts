/** Sysctls. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@fairlead/base";

/**
 * changed: written, `before` was there. kept: it was so already. missing: this kernel or
 * namespace has no such key. refused: it may not be written, as /proc/sys is read-only in most containers.
 */
export type SysctlResult =
  | { readonly outcome: "changed"; readonly before: string; readonly value: string }
  | { readonly outcome: "kept"; readonly value: string }
  | { readonly outcome: "missing" | "refused"; readonly reason: string };

/** Kernel settings by their path, `net/ipv4/conf/all/route_localnet`. */
export interface Sysctl {
  /** Undefined: there is no such key, or it may not be read. */
  read(key: string): Promise<string | undefined>;
  /** Writes the value unless it is there already. Never throws for what the kernel refuses. */
  set(key: string, value: string | number): Promise<SysctlResult>;
}

/**
 * Settings of the network namespace that this process runs in.
 *
 * @param root where /proc/sys is
 */
export function createSysctl(root = "/proc/sys"): Sysctl {
  return {
    read: async (key) => {
      const present = await attempt(readFile(join(root, key), "utf8"));
      return "code" in present ? undefined : normal(present.value);
    },
    async set(key, value) {
      const present = await attempt(readFile(join(root, key), "utf8"));
      if ("code" in present) return failed(key, present.code);
      const before = normal(present.value);
      if (before === normal(String(value))) return { outcome: "kept", value: before };
      const written = await attempt(writeFile(join(root, key), String(value)));
      return "code" in written ? failed(key, written.code) : { outcome: "changed", before, value: String(value) };
    },
  };
}

type Attempt<T> = { readonly value: T } | { readonly code: string };

async function attempt<T>(work: Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await work };
  } catch (error) {
    return { code: errorCode(error) ?? String(error) };
  }
}

function failed(key: string, code: string): SysctlResult {
  if (code === "ENOENT") return { outcome: "missing", reason: `sysctl ${key} does not exist` };
  const because = code === "EROFS" ? "/proc/sys is read-only" : code;
  return { outcome: "refused", reason: `sysctl ${key} cannot be changed (${because})` };
}

/** Several values in one key are separated by tabs; people write spaces. */
function normal(text: string): string {
  return text.trim().replace(/\s+/g, " ");
}

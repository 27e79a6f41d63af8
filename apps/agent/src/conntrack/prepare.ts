import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { errorChainText } from "@fairlead/base";
import type { ConntrackSettings } from "@fairlead/config";
import type { Sysctl } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";
import { conntrackSysctls, maximum } from "./settings.ts";

export interface ConntrackMachine {
  /** Cores of the node: connections are counted for all of it, whatever this process may use. */
  readonly cores: number;
  /** The number of buckets that entries are kept in, as the module's parameter. */
  readonly hashSizeFile: string;
}

const thisMachine = (): ConntrackMachine => ({
  cores: cpus().length,
  hashSizeFile: "/sys/module/nf_conntrack/parameters/hashsize",
});

/**
 * Sets the limits and time-outs of connection tracking where they are others than the configuration's. What cannot be
 * set, as in a container whose /proc/sys is read-only, stays as it is: one warning names it.
 */
export async function prepareConntrack(
  settings: ConntrackSettings,
  sysctl: Sysctl,
  log: Log,
  machine: ConntrackMachine = thisMachine(),
): Promise<void> {
  const refused: string[] = [];
  for (const { key, value } of conntrackSysctls(settings, machine.cores)) {
    const result = await sysctl.set(key, value);
    const name = key.replaceAll("/", ".");
    if (result.outcome === "changed") log.info("Set a sysctl", { name, value, before: result.before });
    else if (result.outcome !== "kept") refused.push(`${name}=${value}: ${result.reason}`);
  }
  const entries = maximum(settings, machine.cores);
  if (entries > 0 && refused.length === 0) {
    const problem = await raiseHashSize(machine.hashSizeFile, Math.trunc(entries / 4));
    if (problem !== undefined) refused.push(problem);
  }
  if (refused.length > 0)
    log.warn("Failed to set some conntrack sysctls; the node's values stay in effect", { refused: refused.join("; ") });
}

/** Four entries a bucket, as the kernel has it by itself. Returns what was in the way. */
async function raiseHashSize(file: string, size: number): Promise<string | undefined> {
  try {
    if (Number(await readFile(file, "utf8")) < size) await writeFile(file, String(size));
    return undefined;
  } catch (error) {
    return `${file}=${size}: ${errorChainText(error)}`;
  }
}

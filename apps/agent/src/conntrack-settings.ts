/** Limits and time-outs of connection tracking. */

import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { errorChainText } from "@fairlead/base";
import type { ConntrackSettings } from "@fairlead/config";
import type { Sysctl } from "@fairlead/kernel";
import type { Log } from "./log.ts";

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

/** One sysctl below net/netfilter, as kube-proxy wants it. */
interface ConntrackSysctl {
  readonly key: string;
  readonly value: number;
}

/** The sysctls that a configuration asks for; what is 0 in it is left as the kernel has it. */
export function conntrackSysctls(settings: ConntrackSettings, cores: number): readonly ConntrackSysctl[] {
  const seconds = (milliseconds: number) => Math.trunc(milliseconds / 1000);
  const wanted: readonly (readonly [name: string, value: number])[] = [
    ["max", maximum(settings, cores)],
    ["tcp_timeout_established", seconds(settings.tcpEstablishedTimeoutMs)],
    ["tcp_timeout_close_wait", seconds(settings.tcpCloseWaitTimeoutMs)],
    ["tcp_be_liberal", settings.tcpBeLiberal ? 1 : 0],
    ["udp_timeout", seconds(settings.udpTimeoutMs)],
    ["udp_timeout_stream", seconds(settings.udpStreamTimeoutMs)],
  ];
  return wanted
    .filter(([, value]) => value > 0)
    .map(([name, value]) => ({ key: `net/netfilter/nf_conntrack_${name}`, value }));
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

/** More would cost too much memory on nodes with many cores, as upstream says. */
const MOST_ENTRIES = 1_048_576;

/** Entries that the node may track; 0: as it is. */
function maximum({ maxPerCore, min }: ConntrackSettings, cores: number): number {
  if (maxPerCore === 0) return 0;
  const scaled = maxPerCore * cores;
  return scaled > MOST_ENTRIES ? MOST_ENTRIES : Math.max(scaled, min);
}

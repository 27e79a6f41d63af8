/** What the configuration is made from. */

import { parseCIDR } from "../address.ts";
import type { Report } from "../report.ts";
import type { FairleadInput } from "../table/fairlead.ts";
import type { KubeProxyInput } from "../table/kube-proxy.ts";
import type { Platform } from "../types.ts";

/** What the configuration is made from: documents that have been read, from flags or from a file. */
export interface ConfigInput {
  /** kube-proxy's defaults of a file and of its flags differ in places: a zero in a file mostly means the default. */
  readonly origin: "file" | "flags";
  readonly kubeProxy: KubeProxyInput;
  readonly fairlead: FairleadInput;
  readonly platform: Platform;
  /** The folder for state where none is said; undefined: Linux'. */
  readonly stateDir: string | undefined;
  /** Flags alongside the documents. */
  readonly options: CommandOptions;
}

export interface CommandOptions {
  readonly master?: string;
  readonly allowExecCredentials: boolean;
  readonly manifests?: string;
  readonly stateDir?: string;
  readonly userspaceOnly: boolean;
  readonly healthzPort?: number;
  readonly metricsPort?: number;
}

/**
 * Zero in a file is the default for most periods (v1alpha1 does not distinguish zero from absent); as a flag it is
 * zero.
 */
export function periodOf(input: ConfigInput, given: number | undefined, fallback: number): number {
  return given === undefined || (given === 0 && input.origin === "file") ? fallback : given;
}

const CIDR_FORM = "must be a CIDR, such as 10.144.0.0/16 or fd00:144::/48";

/**
 * CIDRs of a list in canonical form, each once. kube-proxy drops host bits without a word; here there is one.
 *
 * @param words entries that stand for themselves
 * @param problem what becomes of a bad entry: an error, or a warning where the list is not in use
 */
export function canonicalList(
  report: Report,
  path: string,
  entries: readonly string[],
  { words = [], inUse = true }: { words?: readonly string[]; inUse?: boolean } = {},
): string[] {
  const result = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    const known = words.includes(entry) ? { cidr: entry, hostBits: false } : parseCIDR(entry);
    if (known === undefined) {
      const form = words.length === 0 ? CIDR_FORM : `${CIDR_FORM}, or one of the words ${words.join(", ")}`;
      if (inUse) report.error(`${path}[${index}]`, form, entry);
      else report.warn(`${report.name(path)}: ${JSON.stringify(entry)} is ignored: ${form}`);
      continue;
    }
    if (known.hostBits) report.warn(`${report.name(path)}: ${entry} has host bits set; using ${known.cidr}`);
    if (!result.has(known.cidr)) result.add(known.cidr);
    else if (words.includes(entry)) report.error(`${path}[${index}]`, "is listed twice", entry);
    else report.warn(`${report.name(path)}: ${known.cidr} is listed twice`);
  }
  return [...result];
}

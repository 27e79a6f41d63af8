import { parseCIDR } from "../address.ts";
import type { Report } from "../report.ts";

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

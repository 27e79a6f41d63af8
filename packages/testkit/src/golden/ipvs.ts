import type { IPFamily } from "@fairlead/base";
import { ServerReader, SetReader, type SetState, type VirtualServerState } from "@fairlead/netfilter";

/** The node that the recordings in ipvs mode were made on. */
export const IPVS_RECORDED_ON: Readonly<Record<IPFamily, string>> = { IPv4: "10.201.0.60", IPv6: "fd00:201::60" };

/** A recording in ipvs mode, taken apart. */
export interface IpvsText {
  /** iptables-save and ip6tables-save; undefined: the family was not recorded. */
  readonly rules: Readonly<Record<IPFamily, string | undefined>>;
  readonly servers: readonly VirtualServerState[];
  readonly sets: readonly SetState[];
  /** Those of kube-ipvs0. */
  readonly addresses: readonly string[];
}

/** Reads what ipvsadm-save, ip address, ipset save and iptables-save printed, one after the other. */
export function readIpvsText(text: string): IpvsText {
  const sections = sectionsOf(text);
  const lines = (name: string) => sections.get(name) ?? [];
  return {
    rules: { IPv4: sections.get("iptables")?.join("\n"), IPv6: sections.get("ip6tables")?.join("\n") },
    servers: readLines(lines("ipvsadm"), new ServerReader()),
    sets: readLines(lines("ipset"), new SetReader()),
    addresses: lines("kube-ipvs0").flatMap((line) => /inet6? ([^/]+)\//.exec(line)?.[1] ?? []),
  };
}

/** `# NAME` begins a section. */
function sectionsOf(text: string): ReadonlyMap<string, readonly string[]> {
  const sections = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("# ")) current.push(line);
    else {
      current = [];
      sections.set(line.slice(2), current);
    }
  }
  return sections;
}

interface LineReader<T> {
  push(line: string): T | undefined;
  end(): T | undefined;
}

function readLines<T>(lines: readonly string[], reader: LineReader<T>): T[] {
  return [...lines.map((line) => reader.push(line)), reader.end()].filter((item) => item !== undefined);
}

import type { ConntrackSettings } from "@fairlead/config";

/** One sysctl below net/netfilter, as kube-proxy wants it. */
export interface ConntrackSysctl {
  readonly key: string;
  readonly value: number;
}

/** More would cost too much memory on nodes with many cores, as upstream says. */
const MOST_ENTRIES = 1_048_576;

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

/** Entries that the node may track; 0: as it is. */
export function maximum({ maxPerCore, min }: ConntrackSettings, cores: number): number {
  if (maxPerCore === 0) return 0;
  const scaled = maxPerCore * cores;
  return scaled > MOST_ENTRIES ? MOST_ENTRIES : Math.max(scaled, min);
}

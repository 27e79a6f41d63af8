/** A kernel setting that this mode relies on; the backend's user sets it. */
export interface RequiredSysctl {
  /** With dots, as sysctl prints it: `net.ipv4.vs.conntrack`. */
  readonly name: string;
  /** What it must be set to, as text. */
  readonly value: string;
  /** Why, for the log. */
  readonly reason: string;
}

/** What decides which kernel settings the mode needs. */
export interface SysctlFacts {
  /** ipvs.strictARP */
  readonly strictARP: boolean;
  /** The running kernel's version. */
  readonly kernel: { readonly major: number; readonly minor: number };
}

/** The kernel whose reuse of connections no longer costs a second each (kubernetes issue 93297). */
const REUSE_REPAIRED = { major: 5, minor: 9 };

/** The kernel that has net.ipv4.vs.conn_reuse_mode at all. */
const REUSE_SINCE = { major: 4, minor: 1 };

/** The sysctls of this mode, both families'. Kube-proxy sets the same. */
export function requiredSysctls({ strictARP, kernel }: SysctlFacts): readonly RequiredSysctl[] {
  const since = (version: { readonly major: number; readonly minor: number }) =>
    kernel.major === version.major ? kernel.minor >= version.minor : kernel.major > version.major;
  return [
    sysctl("net.ipv4.vs.conntrack", 1, "netfilter sees the connections of virtual servers, and can masquerade them"),
    ...(since(REUSE_SINCE) && !since(REUSE_REPAIRED)
      ? [
          sysctl(
            "net.ipv4.vs.conn_reuse_mode",
            0,
            "a reused port must not delay a connection by a second (kernels before 5.9)",
          ),
        ]
      : []),
    sysctl("net.ipv4.vs.expire_nodest_conn", 1, "connections to a removed destination end with their next packet"),
    sysctl(
      "net.ipv4.vs.expire_quiescent_template",
      1,
      "session affinity does not keep clients on a draining destination",
    ),
    sysctl("net.ipv4.ip_forward", 1, "packets to endpoints on other hosts are forwarded"),
    ...(strictARP
      ? [
          sysctl(
            "net.ipv4.conf.all.arp_ignore",
            1,
            "the node does not answer ARP requests for service addresses (ipvs.strictARP)",
          ),
          sysctl(
            "net.ipv4.conf.all.arp_announce",
            2,
            "the node does not send ARP requests from service addresses (ipvs.strictARP)",
          ),
        ]
      : []),
  ];
}

function sysctl(name: string, value: number, reason: string): RequiredSysctl {
  return { name, value: String(value), reason };
}

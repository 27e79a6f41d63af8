import type { ConntrackState } from "./rule.ts";

/** Options of the matches that have types, and how many values each takes. Those without a type of their own too. */
export const MATCH_OPTIONS: ReadonlyMap<string, ReadonlyMap<string, number>> = new Map(
  Object.entries({
    comment: { "--comment": 1 },
    tcp: {
      "--sport": 1,
      "--source-port": 1,
      "--dport": 1,
      "--destination-port": 1,
      "--tcp-flags": 2,
      "--syn": 0,
      "--tcp-option": 1,
    },
    udp: { "--sport": 1, "--source-port": 1, "--dport": 1, "--destination-port": 1 },
    sctp: { "--sport": 1, "--source-port": 1, "--dport": 1, "--destination-port": 1, "--chunk-types": 2 },
    conntrack: { "--ctstate": 1 },
    state: { "--state": 1 },
    mark: { "--mark": 1 },
    addrtype: { "--src-type": 1, "--dst-type": 1, "--limit-iface-in": 0, "--limit-iface-out": 0 },
    statistic: { "--mode": 1, "--probability": 1, "--every": 1, "--packet": 1 },
    recent: {
      "--set": 0,
      "--rcheck": 0,
      "--update": 0,
      "--remove": 0,
      "--seconds": 1,
      "--reap": 0,
      "--hitcount": 1,
      "--rttl": 0,
      "--name": 1,
      "--mask": 1,
      "--rsource": 0,
      "--rdest": 0,
    },
    nfacct: { "--nfacct-name": 1 },
    set: { "--match-set": 2 },
    ipvs: {
      "--ipvs": 0,
      "--vproto": 1,
      "--vaddr": 1,
      "--vport": 1,
      "--vdir": 1,
      "--vmethod": 1,
      "--vportctl": 1,
    },
    physdev: {
      "--physdev-is-in": 0,
      "--physdev-is-out": 0,
      "--physdev-is-bridged": 0,
      "--physdev-in": 1,
      "--physdev-out": 1,
    },
  }).map(([module, options]) => [module, new Map(Object.entries(options))]),
);

export const TARGET_OPTIONS: ReadonlyMap<string, ReadonlyMap<string, number>> = new Map(
  Object.entries({
    ACCEPT: {},
    DROP: {},
    RETURN: {},
    REJECT: { "--reject-with": 1 },
    DNAT: { "--to-destination": 1, "--random": 0, "--persistent": 0 },
    MASQUERADE: { "--to-ports": 1, "--random": 0, "--random-fully": 0 },
    REDIRECT: { "--to-ports": 1, "--random": 0 },
    MARK: { "--set-xmark": 1, "--set-mark": 1, "--or-mark": 1, "--and-mark": 1, "--xor-mark": 1 },
  }).map(([target, options]) => [target, new Map(Object.entries(options))]),
);

/** Targets of the kernel without a type here. */
export const OTHER_TARGETS: ReadonlySet<string> = new Set(
  `AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG NETMAP NFLOG NFQUEUE
  NOTRACK QUEUE RATEEST SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE TTL ULOG`.split(/\s+/),
);

const TARGETS: ReadonlySet<string> = new Set([...TARGET_OPTIONS.keys(), ...OTHER_TARGETS]);

/** True for the names that no chain can have. */
export function isTargetName(name: string): boolean {
  return TARGETS.has(name);
}

/** The order in which iptables-save prints them. */
export const CONNTRACK_STATES: readonly ConntrackState[] = [
  "INVALID",
  "NEW",
  "RELATED",
  "ESTABLISHED",
  "UNTRACKED",
  "SNAT",
  "DNAT",
];

/** Numbers that iptables-save 1.8 prints as names (xtables_chain_protos, after /etc/protocols of Debian). */
const PROTOCOL_NAMES: Readonly<Record<string, string>> = {
  "1": "icmp",
  "6": "tcp",
  "17": "udp",
  "50": "esp",
  "51": "ah",
  "58": "ipv6-icmp",
  "132": "sctp",
  "136": "udplite",
  icmpv6: "ipv6-icmp",
};

/** Undefined: every protocol. */
export function canonicalProtocol(text: string): string | undefined {
  const name = text.toLowerCase();
  return name === "all" || name === "0" ? undefined : (PROTOCOL_NAMES[name] ?? name);
}

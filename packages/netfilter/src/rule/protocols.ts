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

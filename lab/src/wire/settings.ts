/** Kernel settings of each namespace, as paths below /proc/sys. */
const EVERYWHERE = {
  // Addresses are unique here, and a test does not wait a second for them.
  "net/ipv6/conf/all/accept_dad": "0",
  "net/ipv6/conf/default/accept_dad": "0",
  "net/ipv6/conf/default/router_solicitations": "0",
  // What the kernel or a relay picks is neither a node port nor one that a peer asks for (peer/ports.ts).
  "net/ipv4/ip_local_port_range": "10000 29999",
} as const;

const ROUTER = {
  "net/ipv4/ip_forward": "1",
  "net/ipv6/conf/all/forwarding": "1",
  "net/ipv4/conf/all/rp_filter": "0",
  "net/ipv4/conf/default/rp_filter": "0",
  // A packet that goes out by the interface it came in by is meant to.
  "net/ipv4/conf/all/send_redirects": "0",
  "net/ipv4/conf/default/send_redirects": "0",
  // Every rejected packet is to be answered: no kind of error is limited, neither to one a second for a destination nor
  // to bursts of 50. The list of IPv6 has to name a kind: 255 is one that the kernel never sends.
  "net/ipv4/icmp_ratemask": "0",
  "net/ipv6/icmp/ratemask": "255",
} as const;

export function kernelSettings(namespace: string): Readonly<Record<string, string>> {
  return ["fabric", "node-a", "node-b"].includes(namespace) ? { ...EVERYWHERE, ...ROUTER } : EVERYWHERE;
}

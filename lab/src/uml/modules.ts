/** What ipvs mode and its test ground need of the kernel. Nothing loads modules by itself in User-Mode Linux. */
export const modules: readonly string[] = [
  "ip_vs",
  ...["rr", "wrr", "lc", "wlc", "sh", "dh", "sed", "nq", "lblc", "lblcr", "mh"].map((name) => `ip_vs_${name}`),
  "nf_conntrack",
  "nf_conntrack_netlink",
  "sctp",
  "dummy",
  "veth",
  "bridge",
  "br_netfilter",
  "vxlan",
  "tun",
  ...["filter", "nat", "mangle"].flatMap((table) => [`iptable_${table}`, `ip6table_${table}`]),
  "ipt_REJECT",
  "ip6t_REJECT",
  ..."nat MASQUERADE REDIRECT mark comment set conntrack addrtype statistic recent tcpudp sctp physdev ipvs nfacct"
    .split(" ")
    .map((name) => `xt_${name}`),
  "ip_set_bitmap_port",
  ...["ip", "ipport", "ipportip", "ipportnet"].map((name) => `ip_set_hash_${name}`),
];

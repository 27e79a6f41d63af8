/** Statements that let the packet on and change nothing that rules ask for, as nft lists them in text and in JSON. */
export const NEUTRAL = /^(?:log\b|meta (?:nftrace|priority|pkttype) set |\{"log":)/;

/**
 * Fields that a match begins with in nft's text; with `set` behind them it is a statement that changes the packet, with
 * `vmap` it gives a verdict.
 */
const FIELDS = [
  ...["ip", "ip6", "tcp", "udp", "udplite", "sctp", "dccp", "icmp", "icmpv6", "ah", "esp", "comp", "th", "ether"],
  ...["vlan", "arp", "meta", "ct", "fib", "rt", "socket", "osf", "ipsec", "exthdr", "iif", "oif", "iifname", "oifname"],
  ...[
    "iifgroup",
    "oifgroup",
    "iiftype",
    "oiftype",
    "mark",
    "skuid",
    "skgid",
    "limit",
    "quota",
    "numgen",
    "jhash",
    "symhash",
  ],
];

/** What only says yes or no. */
export const TEST = new RegExp(
  `^(?:\\{"(?:match|limit|quota|ct count)":|(?:${FIELDS.join("|")}|@[nt]h,\\S+) (?!.*\\b(?:set|vmap)\\b))`,
);

/**
 * `$HOST`, `$OTHER`: addresses; `$TO`: an address for DNAT; `$WITH`: a reject type; each of the family that is tested.
 */
export const WORDS = {
  IPv4: {
    $HOST: "10.96.0.1/32",
    $OTHER: "fd00::1/128",
    $TO: "10.1.0.5",
    $WRONGTO: "[fd00::5]:80",
    $WITH: "icmp-port-unreachable",
    $WRONGWITH: "icmp6-port-unreachable",
  },
  IPv6: {
    $HOST: "fd00::1/128",
    $OTHER: "10.96.0.1/32",
    $TO: "[fd00:1::5]",
    $WRONGTO: "10.1.0.5:80",
    $WITH: "icmp6-port-unreachable",
    $WRONGWITH: "icmp-port-unreachable",
  },
} as const;

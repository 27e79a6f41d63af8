/** What another program writes alongside ours, and takes back: each a script for sh, which fails where it cannot. */
export const NEIGHBOR = {
  writes: `
    iptables -t nat -N THEIRS
    iptables -t nat -A THEIRS -d 203.0.113.99 -j RETURN
    iptables -t nat -I PREROUTING -j THEIRS
    nft add table ip theirs
    nft add chain ip theirs input '{ type filter hook input priority 10; }'
    nft add rule ip theirs input ip saddr 203.0.113.99 accept`,
  removes: `
    iptables -t nat -D PREROUTING -j THEIRS
    iptables -t nat -D THEIRS -d 203.0.113.99 -j RETURN
    iptables -t nat -X THEIRS
    nft list chain ip theirs input | grep -q 203.0.113.99
    nft delete table ip theirs`,
} as const;

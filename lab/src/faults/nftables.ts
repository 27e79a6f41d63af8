import type { IPFamily } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";
import type { ByHand } from "./by-hand.ts";

/** A service in nftables mode's table, which somebody breaks. */
export interface NftTarget {
  /** `ip kube-proxy` */
  readonly table: string;
  /** The key of a service's address in `service-ips`. */
  readonly key: string;
}

export function nftTable(family: IPFamily): string {
  return `${family === "IPv4" ? "ip" : "ip6"} kube-proxy`;
}

/** What an operator does by hand in nftables mode, in nft's own words. */
export const nftFaults: Readonly<Record<string, (target: NftTarget) => string>> = {
  "nft flush ruleset": () => "flush ruleset",
  "the table deleted": ({ table }) => `delete table ${table}`,
  "the dispatch emptied": ({ table }) => `flush map ${table} service-ips`,
  "one service taken out": ({ table, key }) => `delete element ${table} service-ips { ${key} }`,
  "one service led elsewhere": ({ table, key }) =>
    `delete element ${table} service-ips { ${key} }; add element ${table} service-ips { ${key} : goto reject-chain }`,
  "a chain flushed": ({ table }) => `flush chain ${table} services`,
  "a rule before all others": ({ table }) => `insert rule ${table} services drop`,
};

function flushing(...chains: readonly string[]): (family: IPFamily) => Argv {
  return (family) => ["nft", chains.map((chain) => `flush chain ${nftTable(family)} ${chain}`).join("; ")];
}

export const nftablesByHand: ByHand = {
  noServices: flushing("services"),
  noMasquerade: flushing("masquerading"),
  // The second refuses for ClusterIPs whatever no service has a port for.
  noRefusal: flushing("service-endpoints-check", "cluster-ips-check"),
  noSourceRanges: flushing("firewall-check"),
  noService: (family, _service, address) => {
    const element = `${nftTable(family)} service-ips { ${address} . tcp . 80 }`;
    return ["sh", "-c", 'nft get element "$1" 2>/dev/null || exit 0; nft delete element "$1"', "sh", element];
  },
  leadAway: (family, from, to) => {
    const address = family === "IPv4" ? "ip" : "ip6";
    return ["nft", `insert rule ${nftTable(family)} services ${address} daddr ${from} tcp dport 80 dnat to ${to}`];
  },
};

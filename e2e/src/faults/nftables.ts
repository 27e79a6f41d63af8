import type { IPFamily } from "@fairlead/core";

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

/** What somebody does by hand in nftables mode, in nft's own words. */
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

import { besideExpected, type ConformanceCase, clusterObjects, conformanceTable, nftablesRow } from "@fairlead/testkit";

/**
 * The conformance table in nftables mode.
 *
 * @param serviceProxyName of the agent that serves, alongside a first proxy without a service; empty: it is alone
 * @param every of the rows that mean the same to an agent with a name as to a first proxy, one in so many
 */
export function nftTable(serviceProxyName: string, every: number): readonly ConformanceCase[] {
  const rows = conformanceTable.map(nftablesRow);
  if (serviceProxyName === "") return rows;
  return rows.flatMap((row, at) => {
    const nftables = besideExpected(row, { isFirst: false, refuses: "unknown ClusterIPs" });
    const isSame = JSON.stringify(nftables) === JSON.stringify(row.expected.nftables);
    return isSame && at % every !== 0 ? [] : [{ ...row, expected: { ...row.expected, nftables } }];
  });
}

/** A cluster without a service, of which the node's first proxy knows the ranges of ClusterIPs. */
export const EMPTY_CLUSTER = clusterObjects.filter(({ kind }) => kind === "Node" || kind === "ServiceCIDR");

import { besideExpected, type ConformanceCase, clusterObjects, conformanceTable, nftablesRow } from "@fairlead/testkit";

/**
 * The conformance table in nftables mode.
 *
 * @param serviceProxyName of the agent that serves, alongside a first proxy without a service; empty: it is alone
 */
export function nftTable(serviceProxyName: string): readonly ConformanceCase[] {
  const rows = conformanceTable.map(nftablesRow);
  if (serviceProxyName === "") return rows;
  return rows.map((row) => {
    const nftables = besideExpected(row, { isFirst: false, refuses: "unknown ClusterIPs" });
    return { ...row, expected: { ...row.expected, nftables } };
  });
}

/** A cluster without a service, of which the node's first proxy knows the ranges of ClusterIPs. */
export const EMPTY_CLUSTER = clusterObjects.filter(({ kind }) => kind === "Node" || kind === "ServiceCIDR");

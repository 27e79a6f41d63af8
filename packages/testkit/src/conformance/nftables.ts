import { NODE_A } from "../addresses/hosts.ts";
import type { ConformanceCase } from "./case.ts";

/**
 * The row as it is for nftables mode, where node ports are served on the node's primary addresses if nothing else is
 * said.
 */
export function nftablesRow(row: ConformanceCase): ConformanceCase {
  if (row.options.nodePortAddresses.length > 0) return row;
  const { IPv4, IPv6 } = NODE_A.addresses;
  return { ...row, options: { ...row.options, nodePortAddresses: [`${IPv4}/32`, `${IPv6}/128`] } };
}

import { contains, familyOf } from "@fairlead/base";
import { NETWORKS } from "../addresses/networks.ts";
import type { ConformanceCase } from "./case.ts";
import { DROP, LEAVE, type Outcome, type Skip } from "./expected.ts";

/** Two proxies on one node: the one that serves the row, and another one that has no service. */
export interface Beside {
  /** The one that serves is the node's first, not one with a service proxy name. */
  readonly isFirst: boolean;
  /** Whether the other one tells ClusterIPs without a service: a first one in nftables mode does, no other may. */
  readonly refuses: "unknown ClusterIPs" | "nothing of others";
}

/** What becomes of a row's packet: in nftables mode as without the other one, but for ClusterIPs that nobody serves. */
export function besideExpected(row: ConformanceCase, { isFirst, refuses }: Beside): Outcome | Skip {
  const { expected, packet, history } = row;
  const { nftables } = expected;
  if ("skip" in nftables) return nftables;
  const toClusterIP = contains(NETWORKS.services[familyOf(packet.destination)], packet.destination);
  if (!toClusterIP || isFirst) return nftables;
  // Another network's: the first proxy knows as little of it as of any service with a label.
  if (nftables.verdict === "leave" && refuses === "unknown ClusterIPs") return DROP;
  const isNobodys = !JSON.stringify(history.at(-1)).includes(`"${packet.destination}"`);
  return isNobodys && refuses === "nothing of others" ? LEAVE : nftables;
}

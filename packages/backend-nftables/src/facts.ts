import type { ModeFacts } from "@fairlead/core";
import { tableName } from "./plan/names.ts";
import { nftablesSemantics } from "./semantics.ts";

/** What holds for nftables mode on every node (upstream: pkg/proxy/nftables). */
export const nftablesFacts = {
  name: "nftables",
  semantics: nftablesSemantics,
  // The kernel is reached by netlink: neither iptables nor nft is needed.
  needs: { iptables: [], nodeAddresses: false, kernelParts: [], sysctls: [], serviceCIDRs: true },
  keeps: {},
  objects: {
    rules: [],
    own: {
      kinds: ["services", "endpoints"],
      help: "Elements of the table's dispatch (services) and of its maps of endpoints that the plan needs (nftables mode)",
    },
  },
  nftTables: (serviceProxyName) => [tableName(serviceProxyName)],
  packetCounters: {},
  familiesAtOnce: true,
} as const satisfies ModeFacts;

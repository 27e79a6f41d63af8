/** What this mode can do, and how it reads a configuration. */

import type { ModeFacts, ModeSemantics } from "@fairlead/core";
import { tableName } from "./plan/context.ts";

/** How nftables mode reads the plan where modes differ: as iptables mode does (upstream: pkg/proxy/nftables). */
export const nftablesSemantics: ModeSemantics = {
  localSourcesShortCut: true,
  excludesClients: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  weights: "and refusals",
  sourceHash: true,
};

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

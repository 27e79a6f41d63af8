import type { ModeSemantics } from "@fairlead/core";

/** How nftables mode reads the plan where modes differ: as iptables mode does (upstream: pkg/proxy/nftables). */
export const nftablesSemantics: ModeSemantics = {
  localSourcesShortCut: true,
  excludesClients: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  sourceHash: true,
};

import type { ModeSemantics } from "@fairlead/core";

/** How iptables mode reads the plan where modes differ (upstream: pkg/proxy/iptables). */
export const iptablesSemantics: ModeSemantics = {
  localSourcesShortCut: true,
  excludesClients: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  letsNodeOut: true,
};

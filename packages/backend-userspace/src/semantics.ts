import type { ModeSemantics } from "@fairlead/core";

/**
 * How this mode reads the plan where modes differ: as iptables mode does. That every endpoint sees the node is no
 * choice.
 */
export const userspaceSemantics: ModeSemantics = {
  localSourcesShortCut: true,
  excludesClients: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
};

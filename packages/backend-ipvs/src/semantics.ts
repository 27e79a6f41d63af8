import type { ModeSemantics } from "@fairlead/core";

/** How ipvs mode reads the plan where modes differ (upstream: pkg/proxy/ipvs). */
export const ipvsSemantics: ModeSemantics = {
  localSourcesShortCut: false,
  localWithoutEndpoints: "cluster",
  withoutEndpoints: "empty",
  noLocalCounts: "services",
  sourceHash: true,
};

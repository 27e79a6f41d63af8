import { familyOf } from "@fairlead/base";
import type { IPFamily, ModeSemantics, PlannerOptions } from "@fairlead/core";
import type { GoldenNode } from "./golden.ts";

/** What a golden node's agent plans with in a mode, unless asked otherwise. */
export function goldenPlannerOptions(
  node: GoldenNode,
  semantics: ModeSemantics,
  more: Partial<PlannerOptions> = {},
): PlannerOptions {
  const of = (values: readonly string[], family: IPFamily) => values.filter((value) => familyOf(value) === family);
  const [ip4] = of(node.addresses, "IPv4");
  const [ip6] = of(node.addresses, "IPv6");
  return {
    nodeName: node.name,
    zone: node.zone,
    families: ["IPv4", "IPv6"],
    nodeIPs: { ...(ip4 && { IPv4: ip4 }), ...(ip6 && { IPv6: ip6 }) },
    detectors: {
      IPv4: { kind: "cidrs", cidrs: of(node.clusterCIDRs, "IPv4") },
      ...(ip6 && { IPv6: { kind: "cidrs", cidrs: of(node.clusterCIDRs, "IPv6") } }),
    },
    nodePortAddresses: {},
    masqueradeAll: false,
    semantics,
    ...more,
  };
}

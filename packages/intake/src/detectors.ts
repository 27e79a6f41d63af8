import { familyOf } from "@fairlead/base";
import type { DetectLocal } from "@fairlead/config";
import type { IPFamily, LocalTrafficDetector } from "@fairlead/core";

/**
 * How one family's traffic of this node's pods is recognized. Without a CIDR of the family: not at all, as upstream.
 */
export function detectorFor(family: IPFamily, detect: DetectLocal, podCIDRs: readonly string[]): LocalTrafficDetector {
  switch (detect.kind) {
    case "none":
      return detect;
    case "cidrs":
      return byCIDRs(detect.cidrs, family);
    case "node-cidr":
      return byCIDRs(podCIDRs, family);
    case "bridge":
    case "interface-prefix":
      return detect;
  }
}

function byCIDRs(all: readonly string[], family: IPFamily): LocalTrafficDetector {
  const cidrs = all.filter((cidr) => familyOf(cidr) === family);
  return cidrs.length === 0 ? { kind: "none" } : { kind: "cidrs", cidrs };
}

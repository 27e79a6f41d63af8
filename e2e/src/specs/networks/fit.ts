import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { needsExcluded } from "../multi-cni/networks.ts";
import { needs, notIn, onlyIPv4 } from "../needs.ts";

/** For `Spec.unfit`: the spec learns the CIDRs of two networks, in IPv4. */
export function learnsTwo(shape: ClusterShape): string | undefined {
  return needs("learn")(shape) ?? needsExcluded(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape);
}

/** For `Spec.unfit`: the same, and services change hands while clients of both networks call them. */
export function handsOver(shape: ClusterShape): string | undefined {
  const why = "ipvs mode leaves a foreign ClusterIP to its network for all clients";
  return learnsTwo(shape) ?? notIn(["ipvs"], why)(shape);
}

import { familyOf } from "@fairlead/base";
import type { IPFamily, Service } from "../objects.ts";
import type { PlannerOptions } from "./options.ts";

/** Both families read the same annotations: the first one that this node serves reports what is wrong with them. */
export function isFirstFamily(
  { clusterIPs }: Pick<Service, "clusterIPs">,
  family: IPFamily,
  { families }: Pick<PlannerOptions, "families">,
): boolean {
  return families.find((one) => clusterIPs.some((address) => familyOf(address) === one)) === family;
}

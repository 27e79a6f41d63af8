import type { DifferenceTarget } from "@fairlead/compare";
import { type ServicePortGroup, splitKey } from "@fairlead/core";

export function differenceTarget({ id, family, name, service }: ServicePortGroup): DifferenceTarget {
  return { id, family, name, service: splitKey(service) };
}

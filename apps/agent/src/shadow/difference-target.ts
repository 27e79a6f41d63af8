import { type ServicePortGroup, splitKey } from "@fairlead/core";
import type { DifferenceTarget } from "@fairlead/inspect";

export function differenceTarget({ id, family, name, service }: ServicePortGroup): DifferenceTarget {
  return { id, family, name, service: splitKey(service) };
}

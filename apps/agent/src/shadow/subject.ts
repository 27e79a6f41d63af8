import { type ServicePortGroup, splitKey } from "@fairlead/core";
import type { Subject } from "@fairlead/shadow";

export function subjectOf({ id, family, name, service }: ServicePortGroup): Subject {
  return { id, family, name, service: splitKey(service) };
}

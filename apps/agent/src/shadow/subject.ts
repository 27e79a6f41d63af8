import type { ServicePortGroup } from "@fairlead/core";
import type { Subject } from "@fairlead/shadow";

export function subjectOf({ id, family, name, service }: ServicePortGroup): Subject {
  const slash = service.indexOf("/");
  return { id, family, name, service: { namespace: service.slice(0, slash), name: service.slice(slash + 1) } };
}

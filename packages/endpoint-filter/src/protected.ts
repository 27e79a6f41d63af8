import { type FilterEndpoint, type Service, type ServiceKey, serviceKey } from "@fairlead/core";
import type { OptionsBesideCIDRs } from "./options.ts";
import type { Owner } from "./owner.ts";
import { survey } from "./survey.ts";

/** The Service of the API server: without it no node learns of any change. */
export const API_SERVER: ServiceKey = "default/kubernetes";

export function isAPIServer({ namespace, name }: Service): boolean {
  return namespace === "default" && name === "kubernetes";
}

/**
 * Whether a foreign service is served here to all clients that its network does not serve itself: the cluster's DNS and
 * those that the operator named, where something learned or a rule made them foreign. The operator's own list is
 * followed.
 */
export function isServedAnyway(
  { protection, neutralAddresses }: OptionsBesideCIDRs,
  service: Service,
  { ownership, decidedBy }: Pick<Owner, "ownership" | "decidedBy">,
  endpoints: Iterable<FilterEndpoint>,
): boolean {
  if (protection === undefined || ownership !== "foreign" || decidedBy === "annotation") return false;
  if (service.clusterDNS !== true && !protection.services.has(serviceKey(service.namespace, service.name)))
    return false;
  const { own, excluded } = survey(protection.written, endpoints, neutralAddresses);
  return decidedBy === "rule" || own > 0 || excluded === 0;
}

import { contains, familyOf } from "@fairlead/base";
import { compact } from "../data/compact.ts";
import type { IPFamily, Service } from "../objects.ts";
import type { AllowedSources } from "../plan.ts";

const NONE: readonly string[] = [];

/**
 * The clients that may use the load-balancer addresses of a service in a family; undefined: all. A node that such an
 * address is bound to reaches it with that address as its source, so where the node is admitted these are as well.
 */
export function allowedSources(
  service: Service,
  family: IPFamily,
  nodeIP: string | undefined,
): AllowedSources | undefined {
  const ranges = service.loadBalancerSourceRanges.filter((range) => familyOf(range) === family);
  if (ranges.length === 0) return undefined;
  const nodeIsIn = nodeIP !== undefined && ranges.some((range) => contains(range, nodeIP));
  const own = service.loadBalancerIPs.filter((ip) => familyOf(ip) === family);
  return { ranges: compact(ranges), addresses: nodeIsIn ? compact(own) : NONE };
}

import { type AgentConfig, formatError } from "@fairlead/config";
import { type FilterOptions, parseExcludeCIDRs } from "@fairlead/endpoint-filter";

export type FilterSettings =
  | { readonly ok: true; readonly options: FilterOptions; readonly notes: readonly string[] }
  | { readonly ok: false; readonly errors: readonly string[] };

/** The endpoint filter's options out of the configuration, with every wrong CIDR named as the operator wrote it. */
export function filterSettings({ multiCNI, clusterCIDRs, provenance }: AgentConfig): FilterSettings {
  const { "multiCNI.excludeClusterCIDRs": excludedFrom, clusterCIDR: clusterFrom } = provenance;
  const checked = parseExcludeCIDRs(
    { field: excludedFrom ?? "--exclude-cluster-cidr", values: multiCNI.excludeClusterCIDRs },
    { field: clusterFrom ?? "--cluster-cidr", values: clusterCIDRs },
  );
  if (!checked.ok) return { ok: false, errors: checked.errors.map(formatError) };
  const { mixedServices, excludedFrontends, ownershipAnnotation } = multiCNI;
  const options = { excludeCIDRs: checked.cidrs, mixedServices, excludedFrontends, ownershipAnnotation };
  return { ok: true, options, notes: checked.notes };
}

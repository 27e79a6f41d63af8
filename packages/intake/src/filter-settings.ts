import { type AgentConfig, formatError } from "@fairlead/config";
import { type FilterOptions, type MemoryScope, parseExcludeCIDRs } from "@fairlead/endpoint-filter";
import { serviceRule } from "@fairlead/networks";
import { sourceScopes } from "./networks/settings.ts";
import { checkWithin } from "./networks/within.ts";

export type FilterSettings =
  | { readonly ok: true; readonly options: FilterOptions & MemoryScope; readonly notes: readonly string[] }
  | { readonly ok: false; readonly errors: readonly string[] };

/** The endpoint filter's options out of the configuration, with every wrong CIDR named as the operator wrote it. */
export function filterSettings(config: AgentConfig): FilterSettings {
  const { multiCNI, clusterCIDRs, provenance } = config;
  const { "multiCNI.excludeClusterCIDRs": excludedFrom, clusterCIDR: clusterFrom } = provenance;
  const checked = parseExcludeCIDRs(
    { field: excludedFrom ?? "--exclude-cluster-cidr", values: multiCNI.excludeClusterCIDRs },
    { field: clusterFrom ?? "--cluster-cidr", values: clusterCIDRs },
  );
  if (!checked.ok) return { ok: false, errors: checked.errors.map(formatError) };
  const { mixedServices, excludedFrontends, masqueradeToExcluded, ownershipAnnotation, serviceRules } = multiCNI;
  const scopes = sourceScopes(config);
  if (!scopes.ok) return scopes;
  const within = checkWithin(config);
  if (within.errors.length > 0) return { ok: false, errors: within.errors };
  const sources = scopes.scopes.length === 0 ? {} : { sources: scopes.scopes };
  // Rules that ask for namespaces meet none here; where there are some, the learned networks have the labels.
  const rule = serviceRules.length === 0 ? {} : { rule: serviceRule(serviceRules, () => undefined) };
  const settings = { excludeCIDRs: checked.cidrs, mixedServices, excludedFrontends, ownershipAnnotation };
  const masquerade = { clusterCIDRs, ...(masqueradeToExcluded !== undefined && { masqueradeToExcluded }) };
  return {
    ok: true,
    options: { ...sources, ...rule, ...settings, ...masquerade },
    notes: [...checked.notes, ...within.notes],
  };
}

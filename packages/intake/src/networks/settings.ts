import { errorText } from "@fairlead/base";
import type { AgentConfig, CIDRSource } from "@fairlead/config";
import type { FilterOptions } from "@fairlead/endpoint-filter";
import { customSource, type NetworkSource, type NetworksSettings, networkSource } from "@fairlead/networks";

/** What is configured of the sources, as texts that change when it does. */
export type SourceScopes =
  | { readonly ok: true; readonly scopes: readonly string[] }
  | { readonly ok: false; readonly errors: readonly string[] };

export function sourceScopes({ multiCNI, provenance }: AgentConfig): SourceScopes {
  const errors: string[] = [];
  const scopes: string[] = [];
  for (const [side, field] of SIDES) {
    for (const one of multiCNI[field]) {
      try {
        scopes.push(`${side}:${sourceOf(one).scope}`);
      } catch (error) {
        errors.push(`${provenance[`multiCNI.${field}`] ?? field}: ${errorText(error)}`);
      }
    }
  }
  return errors.length === 0 ? { ok: true, scopes } : { ok: false, errors };
}

/**
 * Where CIDRs are learnt from, and how.
 *
 * @param config one that `filterSettings` takes
 * @returns undefined: nothing is learnt
 */
export function networksSettings(config: AgentConfig, filter: FilterOptions): NetworksSettings | undefined {
  const { multiCNI, clusterCIDRs: own } = config;
  const { excludeCIDRsFrom, clusterCIDRsFrom, cidrChanges } = multiCNI;
  if (excludeCIDRsFrom.length + clusterCIDRsFrom.length === 0) return undefined;
  const { excludeCIDRs: excluded, ...beside } = filter;
  const sources = { excluded: excludeCIDRsFrom.map(sourceOf), own: clusterCIDRsFrom.map(sourceOf) };
  return { written: { own, excluded }, sources, filter: beside, ...cidrChanges };
}

const SIDES = [
  ["excluded", "excludeCIDRsFrom"],
  ["own", "clusterCIDRsFrom"],
] as const;

/** @throws RangeError for a custom one that has not its form */
function sourceOf(one: CIDRSource): NetworkSource {
  if (one.source === "custom") return customSource(one);
  return networkSource(one.source, one.vpcs === undefined ? {} : { vpcs: one.vpcs });
}

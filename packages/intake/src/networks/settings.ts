import { errorText } from "@fairlead/base";
import type { AgentConfig, CIDRSource } from "@fairlead/config";
import type { ServiceKey } from "@fairlead/core";
import type { FilterOptions } from "@fairlead/endpoint-filter";
import {
  customSource,
  describeRule,
  type NetworkSource,
  type NetworksSettings,
  networkSource,
} from "@fairlead/networks";
import { withinOf } from "./within.ts";

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
  const rules = multiCNI.serviceRules.map((rule) => `rule:${describeRule(rule)}`);
  return errors.length === 0 ? { ok: true, scopes: [...scopes, ...rules] } : { ok: false, errors };
}

/**
 * Where CIDRs are learned from, and how.
 *
 * @param config one that `filterSettings` takes
 * @param podNamespace where the agent's own pod is
 * @returns undefined: nothing is learned, of networks or of namespaces
 */
export function networksSettings(
  config: AgentConfig,
  filter: FilterOptions,
  podNamespace = "kube-system",
): NetworksSettings | undefined {
  const { multiCNI, clusterCIDRs: own } = config;
  const { excludeCIDRsFrom, clusterCIDRsFrom, cidrChanges, serviceRules: rules } = multiCNI;
  if (excludeCIDRsFrom.length + clusterCIDRsFrom.length + rules.length === 0) return undefined;
  const { excludeCIDRs: excluded, rule: _without, ...beside } = filter;
  const sources = { excluded: excludeCIDRsFrom.map(sourceOf), own: clusterCIDRsFrom.map(sourceOf) };
  const { debounceMs, removalDelayMs } = cidrChanges;
  return {
    consentNamespace: multiCNI.consentNamespace ?? podNamespace,
    written: { own, excluded },
    sources,
    within: withinOf([...excludeCIDRsFrom, ...clusterCIDRsFrom]),
    filter: beside,
    protectedServices: multiCNI.protectedServices.filter(isServiceKey),
    debounceMs,
    removalDelayMs,
    ...(rules.length > 0 && { rules }),
  };
}

/** The annotations of Services that rules ask for. */
export function ruleAnnotations({ multiCNI }: AgentConfig): ReadonlySet<string> {
  return new Set(multiCNI.serviceRules.flatMap((rule) => ("annotation" in rule ? [rule.annotation] : [])));
}

const SIDES = [
  ["excluded", "excludeCIDRsFrom"],
  ["own", "clusterCIDRsFrom"],
] as const;

/** @throws RangeError for a custom one that has not its form */
function sourceOf(one: CIDRSource): NetworkSource {
  const { namespace, name } = one;
  const only = namespace !== undefined && name !== undefined ? { only: { namespace, name } } : {};
  if (one.source === "custom") return customSource({ ...one, ...only });
  return networkSource(one.source, { ...(one.vpcs && { vpcs: one.vpcs }), ...only });
}

function isServiceKey(text: string): text is ServiceKey {
  return text.includes("/");
}

/** The configuration's part for several CNIs, as the endpoint filter and the networks take it. */

import { errorText } from "@fairlead/base";
import { type AgentConfig, type CIDRSource, formatError } from "@fairlead/config";
import type { ModeSemantics, ServiceKey } from "@fairlead/core";
import { checkCIDR, type FilterOptions, type MemoryScope, parseExcludeCIDRs } from "@fairlead/endpoint-filter";
import {
  customSource,
  describeRule,
  type NetworkSource,
  type NetworksSettings,
  networkSource,
  type SourceKind,
  serviceRule,
  sourceKinds,
} from "@fairlead/networks";

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
  const { excludeCIDRs: excluded, rule: _without, ...others } = filter;
  const sources = { excluded: excludeCIDRsFrom.map(sourceOf), own: clusterCIDRsFrom.map(sourceOf) };
  const { debounceMs, removalDelayMs } = cidrChanges;
  return {
    consentNamespace: multiCNI.consentNamespace ?? podNamespace,
    written: { own, excluded },
    sources,
    within: withinOf([...excludeCIDRsFrom, ...clusterCIDRsFrom]),
    filter: others,
    protectedServices: multiCNI.protectedServices.filter(isServiceKey),
    debounceMs,
    removalDelayMs,
    ...(rules.length > 0 && { rules }),
  };
}

/** The annotations of Services that rules and the mode ask for. */
export function ruleAnnotations(
  { multiCNI }: AgentConfig,
  { preserveDestination }: Pick<ModeSemantics, "preserveDestination"> = {},
): ReadonlySet<string> {
  const asked = multiCNI.serviceRules.flatMap((rule) => ("annotation" in rule ? [rule.annotation] : []));
  return new Set(preserveDestination === undefined ? asked : [...asked, preserveDestination]);
}

/** What is configured of the sources, as texts that change when it does. */
type SourceScopes =
  | { readonly ok: true; readonly scopes: readonly string[] }
  | { readonly ok: false; readonly errors: readonly string[] };

function sourceScopes({ multiCNI, provenance }: AgentConfig): SourceScopes {
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

/** What is wrong with the prefix filters of the sources, and what should be known of them. */
interface WithinCheck {
  readonly errors: readonly string[];
  readonly notes: readonly string[];
}

interface Entry {
  readonly cidr: string;
  readonly field: string;
}

/**
 * Checks `within` of all sources: its entries obey the rules of written CIDRs, a CIDR is on one side only, and a source
 * whose objects a node can write has one.
 */
function checkWithin({ multiCNI, clusterCIDRs, provenance }: AgentConfig): WithinCheck {
  const { excludeCIDRsFrom, clusterCIDRsFrom } = multiCNI;
  const cluster = { field: provenance["clusterCIDR"] ?? "--cluster-cidr", values: clusterCIDRs };
  const nameOf = (side: string, at: number) => `${provenance[`multiCNI.${side}`] ?? side}[${at}]`;
  const excluded = excludeCIDRsFrom.map((one, at) => {
    const field = `${nameOf("excludeCIDRsFrom", at)}.within`;
    const found = parseExcludeCIDRs({ field, values: one.within ?? [] }, cluster);
    if (!found.ok) return { errors: found.errors.map((error) => `${error.field}: ${error.value}: ${error.message}`) };
    return { entries: found.cidrs.map((cidr): Entry => ({ cidr, field })), notes: found.notes };
  });
  const own = clusterCIDRsFrom.map((one, at) => {
    const field = `${nameOf("clusterCIDRsFrom", at)}.within`;
    const checked = (one.within ?? []).map((value) => ({ value, ...checkCIDR(value) }));
    return {
      errors: checked.flatMap((found) => ("problem" in found ? [`${field}: ${found.value}: ${found.problem}`] : [])),
      entries: checked.flatMap((found) => ("cidr" in found ? [{ cidr: found.cidr, field }] : [])),
    };
  });
  const required = [
    ...excludeCIDRsFrom.flatMap((one, at) => missing(one, nameOf("excludeCIDRsFrom", at))),
    ...clusterCIDRsFrom.flatMap((one, at) => missing(one, nameOf("clusterCIDRsFrom", at))),
  ];
  const both = bothSides(
    excluded.flatMap(({ entries = [] }) => entries),
    own.flatMap(({ entries }) => entries),
  );
  return {
    errors: [...[...excluded, ...own].flatMap(({ errors = [] }) => errors), ...both, ...required],
    notes: excluded.flatMap(({ notes = [] }) => notes),
  };
}

/** By the id of the source, canonical. */
function withinOf(sources: readonly CIDRSource[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    sources.flatMap((one) => {
      if (one.within === undefined) return [];
      const cidrs = one.within.map(checkCIDR).flatMap((checked) => ("cidr" in checked ? [checked.cidr] : []));
      return [[one.source === "custom" ? one.resource : one.source, cidrs] as const];
    }),
  );
}

function kindOf(source: keyof typeof sourceKinds): SourceKind {
  return sourceKinds[source];
}

function missing(one: CIDRSource, field: string): readonly string[] {
  if (one.source === "custom" || kindOf(one.source).writtenByNodes !== true || one.within !== undefined) return [];
  return [
    `${field}: ${one.source}: needs within: [CIDR] in the file of --config, since the credentials of each node can write ` +
      `these objects; such as {source: ${one.source}, within: [10.244.0.0/16]}`,
  ];
}

function bothSides(excluded: readonly Entry[], own: readonly Entry[]): readonly string[] {
  return excluded.flatMap(({ cidr, field }) => {
    const same = own.find((one) => one.cidr === cidr);
    return same === undefined
      ? []
      : [`${field}: ${cidr}: is also in ${same.field}; give it to one of the two networks`];
  });
}

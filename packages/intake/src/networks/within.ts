import type { AgentConfig, CIDRSource } from "@fairlead/config";
import { checkCIDR, parseExcludeCIDRs } from "@fairlead/endpoint-filter";
import { type SourceKind, sourceKinds } from "@fairlead/networks";

/** What is wrong with the prefix filters of the sources, and what should be known of them. */
export interface WithinCheck {
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
export function checkWithin({ multiCNI, clusterCIDRs, provenance }: AgentConfig): WithinCheck {
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
  const useless = [...excludeCIDRsFrom, ...clusterCIDRsFrom].flatMap(({ source }) => {
    const why = source === "custom" ? undefined : kindOf(source).useless;
    return why === undefined ? [] : [`${source}: ${why}`];
  });
  const both = bothSides(
    excluded.flatMap(({ entries = [] }) => entries),
    own.flatMap(({ entries }) => entries),
  );
  return {
    errors: [...[...excluded, ...own].flatMap(({ errors = [] }) => errors), ...both, ...required],
    notes: [...excluded.flatMap(({ notes = [] }) => notes), ...useless],
  };
}

/** By the id of the source, canonical. */
export function withinOf(sources: readonly CIDRSource[]): ReadonlyMap<string, readonly string[]> {
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

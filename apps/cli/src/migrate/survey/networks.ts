import { containsCIDR, parseCIDRLeniently } from "@fairlead/base";
import { cidrsOf, networkSource, type ResourceRef, type SourceName, sourceKinds } from "@fairlead/networks";
import type { SurveyFinding } from "./finding.ts";

/** Sources with objects that describe a network; Nodes belong to every cluster. */
const TOLD: readonly SourceName[] = (Object.keys(sourceKinds) as SourceName[]).filter((name) =>
  networkSource(name).resources.every(({ group }) => group !== ""),
);

/** The resources in which pod networks define their CIDRs; in most clusters few are there. */
export function networkResources(): readonly ResourceRef[] {
  return TOLD.flatMap((name) => networkSource(name).resources);
}

/**
 * The pod networks that a cluster has in addition to kube-proxy's clusterCIDR.
 *
 * @param objects of each resource, by `plural.group`
 */
export function networkFindings(
  objects: ReadonlyMap<string, readonly unknown[]>,
  clusterCIDRs: readonly string[],
  excluded: readonly string[],
): readonly SurveyFinding[] {
  return TOLD.flatMap((name) => {
    const cidrs = cidrsOf(networkSource(name), ({ plural, group }) => objects.get(`${plural}.${group}`) ?? []);
    return cidrs.length === 0 ? [] : [networkFinding(name, cidrs, clusterCIDRs, excluded)];
  });
}

function networkFinding(
  name: string,
  cidrs: readonly string[],
  clusterCIDRs: readonly string[],
  excluded: readonly string[],
): SurveyFinding {
  const left = cidrs.filter((cidr) => !isWithin(cidr, [...clusterCIDRs, ...excluded]));
  const found = `${name}: ${cidrs.join(", ")}`;
  if (left.length === 0) return { topic: "networks", state: "fits", found };
  return {
    topic: "networks",
    state: "differs",
    found: `${found}; not in clusterCIDR: ${left.join(", ")}`,
    advice: `if that network serves its own services, set --exclude-cluster-cidr=${left.join(",")}; without it Fairlead serves them, as kube-proxy does`,
  };
}

/** What is no CIDR is within none. */
function isWithin(cidr: string, all: readonly string[]): boolean {
  const inner = parseCIDRLeniently(cidr);
  return inner !== undefined && all.some((outer) => containsCIDR(outer, inner.text));
}

import type { CIDRChanges, CIDRSource, MultiCNISettings, ServiceRuleSetting } from "../multi-cni-settings.ts";
import type { Report } from "../report.ts";
import type { ConfigInput } from "./input.ts";

const SIDES = ["excludeCIDRsFrom", "clusterCIDRsFrom"] as const;

/** The endpoint filter's part, and where its CIDRs are learned from. */
export function resolveMultiCNI({ fairlead: { multiCNI } }: ConfigInput, report: Report): MultiCNISettings {
  const sources = {
    excludeCIDRsFrom: multiCNI.excludeCIDRsFrom ?? [],
    clusterCIDRsFrom: multiCNI.clusterCIDRsFrom ?? [],
  };
  checkSources(sources, report);
  return {
    excludeClusterCIDRs: multiCNI.excludeClusterCIDRs ?? [],
    ...sources,
    cidrChanges: resolveChanges(multiCNI.cidrChanges, report),
    mixedServices: multiCNI.mixedServices ?? "own-endpoints",
    excludedFrontends: multiCNI.excludedFrontends ?? "all",
    ownershipAnnotation: multiCNI.ownershipAnnotation ?? true,
    serviceRules: (multiCNI.serviceRules ?? []).map(resolveRule),
  };
}

/** A source that is listed twice would say of its CIDRs that they are both, or be read in two ways. */
function checkSources(sources: Pick<MultiCNISettings, (typeof SIDES)[number]>, report: Report): void {
  const seen = new Map<string, string>();
  for (const side of SIDES) {
    const path = `multiCNI.${side}`;
    for (const [at, one] of sources[side].entries()) {
      const name = nameOf(one);
      const before = seen.get(name);
      if (before !== undefined) report.error(`${path}[${at}]`, `is already listed in ${report.name(before)}`, name);
      seen.set(name, path);
      if (one.source !== "custom" && one.vpcs !== undefined && one.source !== "kube-ovn-subnets") {
        report.error(`${path}[${at}].vpcs`, "is for kube-ovn-subnets only");
      }
    }
  }
}

function nameOf(one: CIDRSource): string {
  return one.source === "custom" ? one.resource : one.source;
}

type GivenRule = NonNullable<ConfigInput["fairlead"]["multiCNI"]["serviceRules"]>[number];

function resolveRule(given: GivenRule): ServiceRuleSetting {
  const subject = "annotation" in given ? { annotation: given.annotation } : { namespaceLabel: given.namespaceLabel };
  return {
    ...subject,
    ...(given.in && { in: given.in }),
    ...(given.notIn && { notIn: given.notIn }),
    ownership: given.ownership,
  };
}

interface GivenChanges {
  readonly debounce?: number | undefined;
  readonly removalDelay?: number | undefined;
  readonly maxForeignPercent?: number | undefined;
}

function resolveChanges(given: GivenChanges, report: Report): CIDRChanges {
  const { debounce = 1_000, removalDelay = 600_000, maxForeignPercent = 50 } = given;
  if (debounce < 0) report.error("multiCNI.cidrChanges.debounce", "must not be negative, such as 1s");
  if (removalDelay < 0) report.error("multiCNI.cidrChanges.removalDelay", "must not be negative, such as 10m");
  return { debounceMs: debounce, removalDelayMs: removalDelay, maxForeignPercent };
}

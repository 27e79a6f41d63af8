import type { Report } from "../report.ts";
import type { CIDRChanges, CIDRSource, MultiCNISettings, ServiceRuleSetting } from "../types.ts";
import type { ConfigInput } from "./input.ts";

const SIDES = ["excludeCIDRsFrom", "clusterCIDRsFrom"] as const;

/** The endpoint filter's part, and where its CIDRs are learned from. */
export function resolveMultiCNI({ fairlead: { multiCNI } }: ConfigInput, report: Report): MultiCNISettings {
  const sources = {
    excludeCIDRsFrom: multiCNI.excludeCIDRsFrom ?? [],
    clusterCIDRsFrom: multiCNI.clusterCIDRsFrom ?? [],
  };
  checkSources(sources, report);
  const learns = [...sources.excludeCIDRsFrom, ...sources.clusterCIDRsFrom].length > 0;
  if (learns && multiCNI.excludedFrontends === undefined) warnOfFrontends(report);
  return {
    excludeClusterCIDRs: multiCNI.excludeClusterCIDRs ?? [],
    ...sources,
    cidrChanges: resolveChanges(multiCNI.cidrChanges, report),
    mixedServices: multiCNI.mixedServices ?? "own-endpoints",
    excludedFrontends: multiCNI.excludedFrontends ?? "all",
    ...(multiCNI.masqueradeToExcluded !== undefined && { masqueradeToExcluded: multiCNI.masqueradeToExcluded }),
    ownershipAnnotation: multiCNI.ownershipAnnotation ?? true,
    serviceRules: (multiCNI.serviceRules ?? []).map(resolveRule),
    protectedServices: protectedServices(multiCNI.protectedServices ?? [], report),
    ...resolveConsent(multiCNI.consentNamespace, report),
  };
}

/** That clients outside of the other networks get no answer was not configured: it is only the default. */
function warnOfFrontends(report: Report): void {
  report.warn(
    `${report.name("multiCNI.excludedFrontends")}: is not set, so services of other networks are left to them for all ` +
      "clients; with excluded-clients this proxy answers nodes, its own pods and clients from outside",
  );
}

/** `namespace/name` each. */
function protectedServices(given: readonly string[], report: Report): readonly string[] {
  for (const [at, one] of given.entries()) {
    if (/^[^/]+\/[^/]+$/.test(one)) continue;
    report.error(`multiCNI.protectedServices[${at}]`, "must be NAMESPACE/NAME, such as kube-system/coredns", one);
  }
  return given;
}

function resolveConsent(namespace: string | undefined, report: Report): Pick<MultiCNISettings, "consentNamespace"> {
  if (namespace === undefined) return {};
  if (!LABEL.test(namespace)) report.error("multiCNI.consentNamespace", "must be a namespace, such as kube-system");
  return { consentNamespace: namespace };
}

/** Name of a namespace (RFC 1123 label). */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

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
      checkObject(`${path}[${at}]`, one, report);
    }
  }
}

/** The one object that a source reads. */
function checkObject(path: string, { source, namespace, name }: CIDRSource, report: Report): void {
  if (namespace === undefined && name === undefined) return;
  if (source !== "flannel" && source !== "custom") {
    report.error(`${path}.namespace`, "and name are for flannel and custom only", namespace ?? "");
  } else if (namespace === undefined || name === undefined) {
    report.error(`${path}.${namespace === undefined ? "namespace" : "name"}`, "is missing: both, or neither", "");
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
    ...(given.notIn && { notIn: given.notIn.filter((value) => typeof value === "string") }),
    ...(given.notIn?.some((value) => typeof value !== "string") && { notInDefaultVPC: true as const }),
    ownership: given.ownership,
    ...(given.excludedFrontends && { excludedFrontends: given.excludedFrontends }),
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
  if (given.maxForeignPercent !== undefined) {
    const field = report.name("multiCNI.cidrChanges.maxForeignPercent");
    report.warn(
      `${field}: raises an alarm only; it holds nothing back anymore. Set within for each source: its objects are believed there`,
    );
  }
  return { debounceMs: debounce, removalDelayMs: removalDelay, maxForeignPercent };
}

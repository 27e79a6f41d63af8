import { containsCIDR, hostCIDR } from "@fairlead/base";
import type { AllowedSources, LocalTrafficDetector } from "@fairlead/core";
import { fromPods, type Rule } from "@fairlead/netfilter";

/** The part of a rule that says where its packets come from. */
export type Origin = Pick<Rule, "source" | "inInterface">;

/** All, or those that a frontend's source ranges accept: one entry for each rule that it takes. */
export function allowed(sources: AllowedSources | undefined): readonly Origin[] {
  if (sources === undefined) return [{}];
  return [...sources.ranges, ...sources.addresses.map(hostCIDR)].map((cidr) => ({ source: { cidr } }));
}

/** Pods of this node among them. A rule asks for one source, so two CIDRs become what they have in common. */
export function allowedPods(detector: LocalTrafficDetector, sources: AllowedSources | undefined): readonly Origin[] {
  return fromPods(detector).flatMap((pods) => allowed(sources).flatMap((gate) => both(pods, gate) ?? []));
}

/** Undefined: none is both. */
function both(pods: Origin, gate: Origin): Origin | undefined {
  if (pods.source === undefined || gate.source === undefined) return { ...gate, ...pods };
  const cidr = common(pods.source.cidr, gate.source.cidr);
  return cidr === undefined ? undefined : { source: { cidr } };
}

/** Of two CIDRs one contains the other, or they have nothing in common. */
function common(a: string, b: string): string | undefined {
  if (containsCIDR(a, b)) return b;
  return containsCIDR(b, a) ? a : undefined;
}

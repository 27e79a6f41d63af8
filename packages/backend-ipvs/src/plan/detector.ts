import type { LocalTrafficDetector } from "@fairlead/core";
import type { AddressMatch, NameMatch } from "@fairlead/netfilter";

/** The part of a rule that tells this node's pods from everybody else by where a packet comes from. */
export type Origin = { readonly source: AddressMatch } | { readonly inInterface: NameMatch };

/** Whether pods can be told apart at all. */
export function detects(detector: LocalTrafficDetector): boolean {
  return fromPods(detector).length > 0;
}

/** What matches packets of pods: one entry for each rule that it takes. */
export function fromPods(detector: LocalTrafficDetector): readonly Origin[] {
  switch (detector.kind) {
    case "none":
      return [];
    case "cidrs":
      return detector.cidrs.map((cidr) => ({ source: { cidr } }));
    case "bridge":
      return [{ inInterface: { value: detector.interface } }];
    case "interface-prefix":
      return [{ inInterface: { value: `${detector.prefix}+` } }];
  }
}

/** What matches packets that are not of pods, as one rule; undefined where it takes several (CIDRs to negate), or none. */
export function notFromPods(detector: LocalTrafficDetector): Origin | undefined {
  const [only, ...others] = fromPods(detector);
  if (only === undefined || others.length > 0) return undefined;
  return "source" in only
    ? { source: { negated: true, cidr: only.source.cidr } }
    : { inInterface: { negated: true, value: only.inInterface.value } };
}

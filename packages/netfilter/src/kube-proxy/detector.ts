import type { AddressMatch, NameMatch } from "../rule/rule.ts";

/** How packets of this node's pods are recognized by where they come from. */
export type PodDetector =
  | { readonly kind: "none" }
  | { readonly kind: "cidrs"; readonly cidrs: readonly string[] }
  | { readonly kind: "bridge"; readonly interface: string }
  | { readonly kind: "interface-prefix"; readonly prefix: string };

/** The part of a rule that says where a packet comes from. */
export type PacketOrigin = { readonly source: AddressMatch } | { readonly inInterface: NameMatch };

/** Whether pods can be distinguished at all. */
export function detectsPods(detector: PodDetector): boolean {
  return fromPods(detector).length > 0;
}

/** What matches packets of pods: one entry for each rule that it takes. */
export function fromPods(detector: PodDetector): readonly PacketOrigin[] {
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

/**
 * What matches packets that are not of pods, as one rule; undefined where iptables cannot say it in one, which is when
 * there are several CIDRs to negate, or nothing to recognize pods by.
 */
export function notFromPods(detector: PodDetector): PacketOrigin | undefined {
  const [only, ...others] = fromPods(detector);
  if (only === undefined || others.length > 0) return undefined;
  return "source" in only
    ? { source: { negated: true, cidr: only.source.cidr } }
    : { inInterface: { negated: true, value: only.inInterface.value } };
}

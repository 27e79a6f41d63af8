import type { AllowedSources, Frontend, ServicePortGroup, Treatment } from "@fairlead/core";
import { comment, fromPods, jump, type Match, type Rule } from "@fairlead/netfilter";
import type { GroupNames } from "./group-names.ts";
import { MARK_MASQ } from "./names.ts";
import { proxied } from "./reach.ts";
import { host } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/**
 * KUBE-EXT: what comes in by an external address or a node port. Sources that are treated in another way than those
 * from outside turn off first, this node's pods before the node itself.
 */
export function* externalRules(
  group: ServicePortGroup,
  frontend: Frontend,
  names: GroupNames,
  context: RenderContext,
): Generator<Rule> {
  const { pod, node, outside } = frontend.treatments;
  if (masqueradesAll([pod, node, outside])) {
    yield { matches: [remark("masquerade traffic", group)], target: jump(MARK_MASQ) };
  } else {
    yield* podRules(group, pod, names, context);
    yield* nodeRules(group, node, names);
  }
  if (proxied(outside)) yield { matches: [], target: jump(names.set[outside.set]) };
}

function masqueradesAll(treatments: readonly Treatment[]): boolean {
  return treatments.every((treatment) => proxied(treatment) && treatment.masquerade);
}

function* podRules(
  group: ServicePortGroup,
  pod: Treatment,
  names: GroupNames,
  context: RenderContext,
): Generator<Rule> {
  if (!proxied(pod)) return;
  for (const origin of fromPods(context.node.detector)) {
    if (pod.masquerade)
      yield { ...origin, matches: [remark("masquerade pod traffic", group)], target: jump(MARK_MASQ) };
    yield { ...origin, matches: [remark("pod traffic", group)], target: jump(names.set[pod.set]) };
  }
}

function* nodeRules(group: ServicePortGroup, node: Treatment, names: GroupNames): Generator<Rule> {
  if (!proxied(node)) return;
  const fromNode: Match = { kind: "addrtype", srcType: { value: "LOCAL" } };
  if (node.masquerade) {
    yield { matches: [remark("masquerade LOCAL traffic", group), fromNode], target: jump(MARK_MASQ) };
  }
  yield { matches: [remark("route LOCAL traffic", group), fromNode], target: jump(names.set[node.set]) };
}

function remark(what: string, group: ServicePortGroup): Match {
  return comment(`${what} for ${group.name} external destinations`);
}

/**
 * KUBE-FW: lets the allowed sources of a load-balancer address on; the others come to KUBE-PROXY-FIREWALL untranslated.
 */
export function firewallRules(group: ServicePortGroup, sources: AllowedSources, names: GroupNames): readonly Rule[] {
  const matches = [comment(`${group.name} loadbalancer IP`)];
  const target = jump(names.external);
  return [
    ...sources.ranges.map((cidr): Rule => ({ source: { cidr }, matches, target })),
    ...sources.addresses.map((address): Rule => ({ source: host(address), matches, target })),
    { matches: [comment(`other traffic to ${group.name} will be dropped by KUBE-PROXY-FIREWALL`)] },
  ];
}

/** The chains of one group of Services. */

import type { Frontend, ServicePortGroup, Treatment } from "@fairlead/core";
import { comment, fromPods, jump, type Match, type Rule } from "@fairlead/netfilter";
import {
  type DispatchRule,
  dispatchRules,
  externalFrontend,
  FRONTEND_LABELS,
  type Gated,
  gatedFrontends,
  sourcesOf,
} from "./dispatch.ts";
import { type ChainNames, chainNames, type GroupNames, MARK_MASQ } from "./group-names.ts";
import { type ChainRules, proxied } from "./rule-parts.ts";
import { endpointChains, setChains } from "./set-chains.ts";
import type { RenderContext } from "./settings.ts";

export interface GroupChains {
  /** They refer to none of the others, but for the one that all jump to. */
  readonly endpointChains: Iterable<ChainRules>;
  /** They refer to those above, each after those that it refers to. */
  readonly serviceChains: Iterable<ChainRules>;
}

/** Each to be read once, endpoint chains before service chains. */
export function groupChains(group: ServicePortGroup, context: RenderContext): GroupChains {
  const names = chainNames(group);
  return {
    endpointChains: endpointChains(group, context, names),
    serviceChains: serviceChains(group, context, names),
  };
}

/** All in the order in which they can be written. */
export function* chainsOf({ endpointChains, serviceChains }: GroupChains): Generator<ChainRules> {
  yield* endpointChains;
  yield* serviceChains;
}

export interface GroupRules {
  readonly endpointChains: readonly ChainRules[];
  readonly serviceChains: readonly ChainRules[];
  readonly dispatch: readonly DispatchRule[];
}

/** Yields after each chain, as a group may have thousands of endpoints. */
export function* groupRules(group: ServicePortGroup | undefined, context: RenderContext): Generator<void, GroupRules> {
  const rules = { endpointChains: [] as ChainRules[], serviceChains: [] as ChainRules[] };
  if (group === undefined) return { ...rules, dispatch: [] };
  const chains = groupChains(group, context);
  for (const chain of chains.endpointChains) yield void rules.endpointChains.push(chain);
  for (const chain of chains.serviceChains) yield void rules.serviceChains.push(chain);
  return { ...rules, dispatch: dispatchRules(group, context) };
}

/** How many chains `serviceChains` gives, without pages. */
export function serviceChainCount(group: ServicePortGroup): number {
  const sets = [group.cluster, group.local].filter(({ length }) => length > 0);
  return sets.length + (externalFrontend(group) === undefined ? 0 : 1) + gatedFrontends(group).length;
}

/** The KUBE-SVC, -SVL, -EXT and -FW chains of a group, each after those that it jumps to. */
function* serviceChains(group: ServicePortGroup, context: RenderContext, names: ChainNames): Generator<ChainRules> {
  for (const set of ["cluster", "local"] as const) {
    if (group[set].length > 0) yield* setChains({ group, name: set, context, names });
  }
  const external = externalFrontend(group);
  if (external !== undefined)
    yield { chain: names.external, rules: [...externalRules(group, external, names, context)] };
  for (const gated of gatedFrontends(group)) {
    yield { chain: names.firewall(gated.kind), rules: firewallRules(group, gated, names) };
  }
}

/**
 * KUBE-EXT: what comes in by an external address or a node port. Sources that are treated in another way than those
 * from outside turn off first, this node's pods before the node itself.
 */
function* externalRules(
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

/** KUBE-FW: lets the allowed sources of an address on; the others come to KUBE-PROXY-FIREWALL untranslated. */
function firewallRules(group: ServicePortGroup, { kind, gate }: Gated, names: GroupNames): readonly Rule[] {
  const matches = [comment(`${group.name} ${FRONTEND_LABELS[kind]}`)];
  const target = jump(names.external);
  return [
    ...sourcesOf(gate).map((source): Rule => ({ source, matches, target })),
    { matches: [comment(`other traffic to ${group.name} will be dropped by KUBE-PROXY-FIREWALL`)] },
  ];
}

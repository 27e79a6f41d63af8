import { socketText } from "@fairlead/base";
import type { EndpointSetName, Frontend, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import {
  comment,
  detectsPods,
  evenProbability,
  jump,
  type Match,
  notFromPods,
  type Rule,
  type RuleList,
} from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { externalRules, firewallRules } from "./external-chains.ts";
import { type ChainNames, type GroupNames, OFF_CLUSTER } from "./group-names.ts";
import { MARK_MASQ } from "./names.ts";
import { externalFrontend, gatedFrontend, internalSet, proxied } from "./reach.ts";
import { recent } from "./recent.ts";
import { toAddress } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/** The KUBE-SVC, -SVL, -EXT and -FW chains of a group, each after those that it jumps to. */
export function* serviceChains(
  group: ServicePortGroup,
  context: RenderContext,
  names: ChainNames,
): Generator<ChainRules> {
  for (const set of ["cluster", "local"] as const) {
    if (group[set].length > 0) yield { chain: names.set[set], rules: setRules(group, set, context, names) };
  }
  const external = externalFrontend(group);
  if (external !== undefined)
    yield { chain: names.external, rules: [...externalRules(group, external, names, context)] };
  const gated = gatedFrontend(group);
  if (gated?.sources !== undefined) yield firewallChain(group, gated.sources, names);
}

/** How many chains `serviceChains` gives. */
export function serviceChainCount(group: ServicePortGroup): number {
  return serviceChainKinds(group).length;
}

function serviceChainKinds(group: ServicePortGroup): readonly (EndpointSetName | "external" | "firewall")[] {
  const there = {
    cluster: group.cluster.length > 0,
    local: group.local.length > 0,
    external: externalFrontend(group) !== undefined,
    firewall: gatedFrontend(group) !== undefined,
  };
  return (["cluster", "local", "external", "firewall"] as const).filter((kind) => there[kind]);
}

function firewallChain(
  group: ServicePortGroup,
  sources: NonNullable<Frontend["sources"]>,
  names: GroupNames,
): ChainRules {
  return { chain: names.firewall, rules: firewallRules(group, sources, names) };
}

/** Made while they are read: there is one for each endpoint, or two. */
function setRules(group: ServicePortGroup, set: EndpointSetName, context: RenderContext, names: ChainNames): RuleList {
  const internal = group.frontends.filter((one) => one.kind === "cluster-ip" && internalSet(one) === set);
  const masquerading = internal.flatMap((frontend) => [...masqueradeRules(group, frontend, context)]);
  const { affinitySeconds } = group;
  const size = group[set].length;
  return {
    length: masquerading.length + (affinitySeconds === undefined ? size : 2 * size),
    *[Symbol.iterator]() {
      yield* masquerading;
      if (affinitySeconds !== undefined) yield* sticky(group, set, affinitySeconds, context, names);
      yield* spread(group, set, context, names);
    },
  };
}

/** Who has been at an endpoint lately goes there again. */
function* sticky(
  group: ServicePortGroup,
  set: EndpointSetName,
  seconds: number,
  context: RenderContext,
  names: ChainNames,
): Generator<Rule> {
  for (const endpoint of group[set]) {
    const chain = names.endpoint(endpoint);
    const known: Match = { ...recent(chain, context.family), op: "rcheck", seconds, reap: true };
    yield { matches: [...remark(group, endpoint, context), known], target: jump(chain) };
  }
}

/** Each rule takes its share of what the rules before it left: 1/n, 1/(n-1), … and the last one all. */
function* spread(
  group: ServicePortGroup,
  set: EndpointSetName,
  context: RenderContext,
  names: ChainNames,
): Generator<Rule> {
  let left = group[set].length;
  for (const endpoint of group[set]) {
    const share = shareOf(left--);
    const said = remark(group, endpoint, context);
    yield { matches: said.length === 0 ? share : [...said, ...share], target: jump(names.endpoint(endpoint)) };
  }
}

function shareOf(left: number): readonly Match[] {
  if (left === 1) return ALL;
  const known = shares.get(left);
  if (known !== undefined) return known;
  const share: readonly Match[] = [{ kind: "statistic", mode: "random", probability: evenProbability(left) }];
  shares.set(left, share);
  return share;
}

const ALL: readonly Match[] = [];
/** As many as the largest service has endpoints: all services share them. */
const shares = new Map<number, readonly Match[]>();

function remark(group: ServicePortGroup, endpoint: PlanEndpoint, context: RenderContext): readonly Match[] {
  if (context.large) return [];
  return [comment(`${group.name} -> ${socketText(endpoint.address, endpoint.port)}`)];
}

/**
 * Marks packets to the cluster IP whose answer would not find its way back through this node: all of them, or those
 * that are not of its pods.
 */
function* masqueradeRules(group: ServicePortGroup, frontend: Frontend, context: RenderContext): Generator<Rule> {
  const { pod, node, outside } = frontend.treatments;
  if (!masquerades(outside) && !masquerades(node)) return;
  const packets = toAddress(frontend.address ?? "", group.protocol, frontend.port, `${group.name} cluster IP`);
  if (masquerades(pod)) {
    yield { ...packets, target: jump(MARK_MASQ) };
    return;
  }
  if (!detectsPods(context.node.detector)) return;
  const origin = notFromPods(context.node.detector);
  yield origin === undefined
    ? { ...packets, target: jump(OFF_CLUSTER) }
    : { ...origin, ...packets, target: jump(MARK_MASQ) };
}

function masquerades(treatment: Frontend["treatments"]["pod"]): boolean {
  return proxied(treatment) && treatment.masquerade;
}

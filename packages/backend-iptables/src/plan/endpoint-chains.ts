import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { comment, endpointText, jump, type Match, type Rule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import type { ChainNames } from "./group-names.ts";
import { MARK_MASQ } from "./names.ts";
import { recent } from "./recent.ts";
import { host, protocolName } from "./rule-parts.ts";
import type { RenderContext } from "./settings.ts";

/** The KUBE-SEP chains of a group: one for each endpoint that one of its sets has. */
export function* endpointChains(
  group: ServicePortGroup,
  context: RenderContext,
  names: ChainNames,
): Generator<ChainRules> {
  for (const endpoint of usedEndpoints(group)) {
    const chain = names.endpoint(endpoint);
    yield { chain, rules: [hairpin(group, endpoint, context), translation(group, endpoint, chain, context)] };
  }
}

/** Those that have a chain, in the order of the chains. */
export function* usedEndpoints(group: ServicePortGroup): Generator<PlanEndpoint> {
  yield* group.cluster;
  if (group.local.length === 0) return;
  const seen = new Set(group.cluster);
  for (const endpoint of group.local) if (!seen.has(endpoint)) yield endpoint;
}

/** An endpoint that reaches itself through the service must see another source than its own, or it answers itself. */
function hairpin(group: ServicePortGroup, endpoint: PlanEndpoint, context: RenderContext): Rule {
  return { source: host(endpoint.address), matches: remark(group, context), target: jump(MARK_MASQ) };
}

function translation(group: ServicePortGroup, endpoint: PlanEndpoint, chain: string, context: RenderContext): Rule {
  const protocol = protocolName(group.protocol);
  const remember: readonly Match[] =
    group.affinitySeconds === undefined ? [] : [{ ...recent(chain, context.family), op: "set" }];
  return {
    protocol: { value: protocol },
    matches: [...remark(group, context), ...remember, { kind: protocol }],
    target: { kind: "dnat", to: endpointText(endpoint.address, endpoint.port) },
  };
}

function remark(group: ServicePortGroup, context: RenderContext): readonly Match[] {
  return context.large ? [] : [comment(group.name)];
}

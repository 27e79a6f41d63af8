import type { EndpointSetName, Frontend, ServicePortGroup } from "@fairlead/core";
import type { ChainRules } from "./chain-rules.ts";
import { externalRules, firewallRules } from "./external-chains.ts";
import type { ChainNames, GroupNames } from "./group-names.ts";
import { externalFrontend, gatedFrontend } from "./reach.ts";
import { setChains } from "./set-chains.ts";
import type { RenderContext } from "./settings.ts";

/** The KUBE-SVC, -SVL, -EXT and -FW chains of a group, each after those that it jumps to. */
export function* serviceChains(
  group: ServicePortGroup,
  context: RenderContext,
  names: ChainNames,
): Generator<ChainRules> {
  for (const set of ["cluster", "local"] as const) {
    if (group[set].length > 0) yield* setChains({ group, name: set, context, names });
  }
  const external = externalFrontend(group);
  if (external !== undefined)
    yield { chain: names.external, rules: [...externalRules(group, external, names, context)] };
  const gated = gatedFrontend(group);
  if (gated?.gate !== undefined) yield firewallChain(group, gated.gate, names);
}

/** How many chains `serviceChains` gives, without pages. */
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

function firewallChain(group: ServicePortGroup, sources: NonNullable<Frontend["gate"]>, names: GroupNames): ChainRules {
  return { chain: names.firewall, rules: firewallRules(group, sources, names) };
}

import type { ServicePortGroup } from "@fairlead/core";
import type { ChainRules } from "./chain-rules.ts";
import { type DispatchRule, dispatchRules } from "./dispatch.ts";
import { endpointChains } from "./endpoint-chains.ts";
import { chainNames } from "./group-names.ts";
import { serviceChains } from "./service-chains.ts";
import type { RenderContext } from "./settings.ts";

/** The chains of one group. */
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

/** All that one group needs in the kernel. */
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

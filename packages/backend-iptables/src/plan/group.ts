import type { ServicePortGroup } from "@fairlead/core";
import type { ChainRules } from "./chain-rules.ts";
import { type DispatchRule, dispatchRules } from "./dispatch.ts";
import { endpointChains } from "./endpoint-chains.ts";
import { serviceChains } from "./service-chains.ts";
import type { RenderContext } from "./settings.ts";

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
  for (const chain of endpointChains(group, context)) yield void rules.endpointChains.push(chain);
  for (const chain of serviceChains(group, context)) yield void rules.serviceChains.push(chain);
  return { ...rules, dispatch: dispatchRules(group, context) };
}

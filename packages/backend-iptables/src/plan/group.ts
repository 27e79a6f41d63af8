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

export const NO_RULES: GroupRules = { endpointChains: [], serviceChains: [], dispatch: [] };

export function groupRules(group: ServicePortGroup, context: RenderContext): GroupRules {
  return {
    endpointChains: [...endpointChains(group, context)],
    serviceChains: [...serviceChains(group, context)],
    dispatch: dispatchRules(group, context),
  };
}

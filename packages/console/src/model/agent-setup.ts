import type { AgentConfig } from "@fairlead/config";
import type { FilterOptions, Memory } from "@fairlead/endpoint-filter";
import type { Mode } from "@fairlead/inspect";
import type { NetworksOnceParts } from "@fairlead/intake";

/** How the agents are set up. */
export interface AgentSetup {
  readonly mode: Mode;
  readonly config: AgentConfig;
  readonly filter: FilterOptions;
  /** Which objects CIDRs are learned from. Default: none are. */
  readonly networks?: NetworksOnceParts["settings"] | undefined;
  readonly memory: Memory;
}

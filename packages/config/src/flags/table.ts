import { CLUSTER_FLAGS } from "./cluster-flags.ts";
import type { FlagDefinition, FlagGroup } from "./definition.ts";
import { MODE_FLAGS } from "./mode-flags.ts";
import { PROCESS_FLAGS } from "./process-flags.ts";
import { SHADOW_FLAGS } from "./shadow-flags.ts";

/** Every flag of kube-proxy v1.37 with its name, type and default, and Fairlead's own. --help prints this table. */
export const FLAG_GROUPS: readonly FlagGroup[] = [...CLUSTER_FLAGS, ...MODE_FLAGS, SHADOW_FLAGS, ...PROCESS_FLAGS];

export const FLAGS: ReadonlyMap<string, FlagDefinition> = new Map(
  FLAG_GROUPS.flatMap(({ flags }) => flags).map((flag) => [flag.name, flag]),
);

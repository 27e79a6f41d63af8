import { CLUSTER_FLAGS } from "./cluster-flags.ts";
import { flagsOf, type Program } from "./command-line.ts";
import type { FlagDefinition, FlagGroup } from "./definition.ts";
import { MODE_FLAGS } from "./mode-flags.ts";
import { PROCESS_FLAGS } from "./process-flags.ts";
import { SHADOW_FLAGS } from "./shadow-flags.ts";

/** Every flag of kube-proxy v1.37 with its name, type and default, and Fairlead's own. --help prints this table. */
export const FLAG_GROUPS: readonly FlagGroup[] = [...CLUSTER_FLAGS, ...MODE_FLAGS, SHADOW_FLAGS, ...PROCESS_FLAGS];

export const FLAGS: ReadonlyMap<string, FlagDefinition> = flagsOf(FLAG_GROUPS);

export const PROXY: Program = {
  name: "fairlead-proxy",
  description:
    "Kubernetes service proxy for clusters with more than one pod network; a drop-in for kube-proxy.\n" +
    "With --config, only the flags marked * take effect.",
  groups: FLAG_GROUPS,
};

/**
 * Node opens its inspector on SIGUSR1, which then runs whatever any local user tells it, with the rights of the
 * process: never in ours. Node knows the option from 22.14 on.
 */
export const INSPECTOR_OPTION = "--disable-sigusr1";

/**
 * V8 lets the old generation grow to so many MB before it marks for the first time. Else it lowers that limit with each
 * small collection, and marks what a start has just read while the first rules are written: a tenth of the first sync
 * of 1,000 services. What stays resident is the same.
 */
export const HEAP_OPTION = "--initial-old-space-size=64";

/** What the agent's Node is given wherever it is started for a node. */
export const AGENT_NODE_OPTIONS: readonly string[] = [INSPECTOR_OPTION, HEAP_OPTION];

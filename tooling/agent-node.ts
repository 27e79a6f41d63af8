/**
 * Node opens its inspector on SIGUSR1, which then runs what any local user asks for, with the rights of the process:
 * never in ours. Node knows the option from 22.14 on.
 */
export const INSPECTOR_OPTION = "--disable-sigusr1";

/** What the agent's Node is given wherever it is started for a node. */
export const AGENT_NODE_OPTIONS: readonly string[] = [INSPECTOR_OPTION];

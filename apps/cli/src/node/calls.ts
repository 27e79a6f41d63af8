/** What one `fairlead` calls another one with, in the pod of a node's agent. */

/** It prints the state of the pod's node as JSON, or the parts of it that follow: one start in place of dozens. */
export const STATE = "__state";

/** It prints the connections that the kernel tracks, a line of JSON each; with `--follow` then what becomes of them. */
export const CONNECTIONS = "__connections";

/** It asks the agent of its network namespace for a full sync. */
export const FULL_SYNC = "__full-sync";

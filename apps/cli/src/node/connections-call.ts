/**
 * What `fairlead` is called with in the agent's pod, by another `fairlead`: it prints the connections that the kernel
 * tracks, as JSON, a line each; with `--follow` then what becomes of them.
 */
export const CONNECTIONS = "__connections";

/**
 * What `fairlead` is called with in the agent's pod, by another `fairlead` that was asked for a repair: it tells the
 * agent of its network namespace to do a full sync.
 */
export const FULL_SYNC = "__full-sync";

/**
 * What `fairlead` is called with in the agent's pod, by another `fairlead`: it prints the state of the pod's node as
 * JSON, or the parts of it that follow. One start in the pod takes the place of dozens.
 */
export const STATE = "__state";

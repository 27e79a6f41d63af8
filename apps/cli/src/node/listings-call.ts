/**
 * What `fairlead` is called with in the agent's pod, by another `fairlead`: it prints what all programs say of the
 * kernel that are asked for it, as JSON, a line each. One start in the pod then takes the place of dozens.
 */
export const LISTINGS = "__listings";

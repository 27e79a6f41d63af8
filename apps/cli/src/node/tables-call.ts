/**
 * What `fairlead` is called with in the agent's pod, by another `fairlead`: with `ip` or `ip6` it prints that family's
 * tables of nftables, read by netlink, as JSON; without, the names of all tables. On its own host it answers itself.
 */
export const TABLES = "__tables";

import type { ClusterShape, NetworkShape } from "@fairlead/lab/provider/cluster";

/** The networks that Fairlead serves, and one that it leaves alone. */
export function excludedNetwork({ networks }: ClusterShape): NetworkShape {
  const found = networks.find(({ excluded }) => excluded);
  if (found === undefined) throw new Error("no network of this cluster is excluded");
  return found;
}

export function needsExcluded({ networks }: ClusterShape): string | undefined {
  return networks.some(({ excluded }) => excluded) ? undefined : "needs a second network, which Fairlead leaves alone";
}

export function needsOwnLoadBalancer({ networks }: ClusterShape): string | undefined {
  const some = networks.some(({ excluded, ownLoadBalancer }) => excluded && ownLoadBalancer);
  return some ? undefined : "needs an excluded network with a load balancer of its own";
}

export const OWNERSHIP = "fairlead.dev/ownership";

export interface FilterOptions {
  /** CIDRs whose endpoints another network serves, checked by `parseExcludeCIDRs`. */
  readonly excludeCIDRs: readonly string[];
  /**
   * A service with endpoints on both sides: `own-endpoints` proxies to those outside of the excluded CIDRs, `skip`
   * leaves the service alone, `all` proxies to every endpoint.
   */
  readonly mixedServices: "own-endpoints" | "skip" | "all";
  /** What of a foreign service is left to its network: `all`, or the ClusterIP alone (`cluster-ip`). */
  readonly excludedFrontends: "all" | "cluster-ip";
  /** Whether the annotation `fairlead.dev/ownership` overrides the CIDRs. */
  readonly ownershipAnnotation: boolean;
}

export const OWNERSHIP_ANNOTATION = "fairlead.dev/ownership";

import type { EndpointSetName, Frontend, ServicePortGroup, SourceClass, Treatment } from "@fairlead/core";

/** Plain questions about a frontend's treatments. */

export type Proxied = Extract<Treatment, { verdict: "proxy" }>;

const CLASSES: readonly SourceClass[] = ["outside", "node", "pod"];

export function proxied(treatment: Treatment): treatment is Proxied {
  return treatment.verdict === "proxy";
}

/** Some source class gets to endpoints by this frontend, so nat has to catch its packets. */
export function reachesEndpoints(frontend: Frontend): boolean {
  return CLASSES.some((source) => proxied(frontend.treatments[source]));
}

/**
 * What filter does with the frontend's packets that nat has not sent on. One verdict is enough for all source classes:
 * those that are proxied do not come to filter with the frontend's address anymore.
 */
export function refusal(frontend: Frontend): "reject" | "drop" | undefined {
  for (const source of CLASSES) {
    const { verdict } = frontend.treatments[source];
    if (verdict === "reject" || verdict === "drop") return verdict;
  }
  return undefined;
}

/** The frontend that the group's KUBE-EXT chain follows; all external frontends of a group are treated alike. */
export function externalFrontend(group: ServicePortGroup): Frontend | undefined {
  return group.frontends.find((frontend) => frontend.reach === "external" && reachesEndpoints(frontend));
}

/** A frontend with the gate that all gated ones of the group share. */
export function gatedFrontend(group: ServicePortGroup): Frontend | undefined {
  return group.frontends.find(isGated);
}

/** An address that only some sources may use, and that nat sends on for those. */
export function isGated(frontend: Frontend): boolean {
  return frontend.gate !== undefined && reachesEndpoints(frontend);
}

/** The endpoint set that an internal frontend's packets go to, whatever their source. */
export function internalSet(frontend: Frontend): EndpointSetName | undefined {
  return CLASSES.map((source) => frontend.treatments[source]).find(proxied)?.set;
}

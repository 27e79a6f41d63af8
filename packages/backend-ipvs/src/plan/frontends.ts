import type { EndpointSetName, Frontend, PlanEndpoint, ServicePortGroup, Treatment } from "@fairlead/core";

/** Plain questions about a frontend. In this mode all source classes are treated alike but for masquerading. */

type Proxied = Extract<Treatment, { verdict: "proxy" }>;

function proxied({ treatments: { outside } }: Frontend): Proxied | undefined {
  return outside.verdict === "proxy" ? outside : undefined;
}

/** The frontends that this proxy serves: those that are left to another network are nowhere. */
export function servedFrontends(group: ServicePortGroup): readonly Frontend[] {
  return group.frontends.filter((frontend) => proxied(frontend) !== undefined);
}

export function endpointsOf(group: ServicePortGroup, frontend: Frontend): readonly PlanEndpoint[] {
  const set: EndpointSetName = proxied(frontend)?.set ?? "cluster";
  return group[set];
}

/** The client's address is kept, as externalTrafficPolicy Local asks for. */
export function keepsSource(frontend: Frontend): boolean {
  return proxied(frontend)?.masquerade === false;
}

/** Even this node's pods are masqueraded. */
export function masqueradesPods({ treatments: { pod } }: Frontend): boolean {
  return pod.verdict === "proxy" && pod.masquerade;
}

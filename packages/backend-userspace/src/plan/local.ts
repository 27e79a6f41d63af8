import type { EndpointSetName, ServicePortGroup } from "@fairlead/core";
import { proxied } from "./relays.ts";

/** Plain questions about a group that is served on local ports only, without any rule. */

/**
 * Names the local port of a service with one port, `8080`, or of each of its ports by name, `http=8080,metrics=9090`.
 */
export const LOCAL_PORT_ANNOTATION = "fairlead.dev/local-port";

/** Ports below are for root. */
const FIRST_FREE = 1024;
const PRIVILEGED_OFFSET = 8_000;

/** What this node itself would be given at the service's cluster IP. */
export function localSets({ frontends }: ServicePortGroup): readonly EndpointSetName[] {
  const treatments = frontends.filter(({ reach }) => reach === "internal").map((frontend) => frontend.treatments.node);
  return [...new Set(treatments.filter(proxied).map(({ set }) => set))];
}

/** The annotation's port; else the service's own, or 8080 for 80, 8443 for 443 and so on. */
export function localPort(group: ServicePortGroup): number | undefined {
  const own = group.frontends.find(({ reach }) => reach === "internal")?.port;
  const fallback = own !== undefined && own < FIRST_FREE ? own + PRIVILEGED_OFFSET : own;
  return annotatedPort(group) ?? fallback;
}

function annotatedPort({ annotations, name }: ServicePortGroup): number | undefined {
  const portName = name.slice(name.indexOf("/") + 1).split(":")[1] ?? "";
  const entries = (annotations[LOCAL_PORT_ANNOTATION] ?? "").split(",").map((entry) => entry.trim());
  const given = entries.find((entry) => entry.startsWith(`${portName}=`))?.slice(portName.length + 1);
  const text = given ?? (entries.length === 1 ? entries[0] : undefined) ?? "";
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}

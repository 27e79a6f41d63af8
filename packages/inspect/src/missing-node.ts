import { type ClusterView, onlyLocal, type ServiceKey, type SliceEndpoint } from "@fairlead/core";
import type { Cluster } from "./cluster.ts";

/** As many services are named. */
const NAMED = 3;

/**
 * What a plan for a node without its Node object is wrong or unsure about: hints of zones, because its zone is not
 * known, and Local policies, where nothing else shows that there is such a node. Empty: the Node object is there, or
 * would change nothing.
 *
 * @param services the services that matter. Default: all
 */
export function missingNodeDoubts(
  { state, node }: Pick<Cluster, "node"> & { readonly state: ClusterView },
  nodeName: string,
  services: Iterable<ServiceKey> = state.keys(),
): readonly string[] {
  if (node !== undefined) return [];
  const keys = [...services].sort();
  const endpoints = (key: ServiceKey) => state.slices(key).flatMap((slice) => slice.endpoints);
  const hinted = keys.filter((key) => endpoints(key).some(({ zoneHints }) => zoneHints !== undefined));
  const nodes = namesOf(keys.flatMap(endpoints));
  const local = nodes.has(nodeName) ? [] : keys.filter((key) => isLocal(state, key) && endpoints(key).length > 0);
  const missing = `no Node object of ${nodeName} is there`;
  return [
    ...(hinted.length === 0
      ? []
      : [
          `${missing}: its zone is not known, and the zone hints of ${servicesText(hinted, "count")} for nothing ${some(hinted)}`,
        ]),
    ...(local.length === 0
      ? []
      : [
          `${missing}, and no endpoint is on it: ${local.length} ${local.length === 1 ? "service" : "services"} with a Local policy ${local.length === 1 ? "is" : "are"} dropped there ${some(local)}${nodes.size === 0 ? "" : `; endpoints are on: ${[...nodes].sort().join(", ")}`}`,
        ]),
  ];
}

function namesOf(endpoints: readonly SliceEndpoint[]): ReadonlySet<string> {
  return new Set(endpoints.flatMap(({ nodeName }) => nodeName ?? []));
}

function isLocal(state: ClusterView, key: ServiceKey): boolean {
  const service = state.service(key);
  if (service === undefined) return false;
  return onlyLocal(service.externalTrafficPolicy) || onlyLocal(service.internalTrafficPolicy);
}

function servicesText({ length }: readonly ServiceKey[], verb: string): string {
  return `${length} ${length === 1 ? "service" : "services"} ${verb}`;
}

function some(keys: readonly ServiceKey[]): string {
  const more = keys.length > NAMED ? `, and ${keys.length - NAMED} more` : "";
  return `(${keys.slice(0, NAMED).join(", ")}${more})`;
}

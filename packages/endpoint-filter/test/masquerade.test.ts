import { expect, test } from "vitest";
import { createEndpointFilter, type FilterOptions } from "../src/index.ts";
import { endpointsAt, service } from "./service.ts";

const OPTIONS: FilterOptions = {
  excludeCIDRs: ["10.244.0.0/16"],
  clusterCIDRs: ["10.144.0.0/16"],
  mixedServices: "own-endpoints",
  excludedFrontends: "excluded-clients",
  ownershipAnnotation: true,
};
const OWN = ["10.144.1.5"];
const FOREIGN = ["10.244.1.5"];
const BOTH = [...OWN, ...FOREIGN];

function masquerades(addresses: readonly string[], options: Partial<FilterOptions> = {}, annotation?: string): boolean {
  const annotations = annotation === undefined ? {} : { "fairlead.dev/ownership": annotation };
  const filter = createEndpointFilter({ ...OPTIONS, ...options });
  const decision = filter.decide(service(annotations), "IPv4", endpointsAt(addresses, "a"), undefined);
  return decision.masqueradesPods === true;
}

test.each<[string, readonly string[], Partial<FilterOptions>, boolean]>([
  ["a service of the other network", FOREIGN, {}, true],
  ["without any cluster CIDR", FOREIGN, { clusterCIDRs: [] }, true],
  ["one of ours", OWN, {}, false],
  ["a mixed one, of which our endpoints are used", BOTH, { masqueradeToExcluded: true }, false],
  ["a mixed one, of which all are used", BOTH, { mixedServices: "all", masqueradeToExcluded: true }, true],
  ["a mixed one, of which all are used, by default", BOTH, { mixedServices: "all" }, false],
  ["switched off", FOREIGN, { masqueradeToExcluded: false }, false],
  ["in a cluster CIDR that has both networks", FOREIGN, { clusterCIDRs: ["10.0.0.0/8"] }, false],
  ["only its ClusterIP is left, by default", FOREIGN, { excludedFrontends: "cluster-ip" }, false],
  ["only its ClusterIP is left", FOREIGN, { excludedFrontends: "cluster-ip", masqueradeToExcluded: true }, true],
  ["nothing of it is served", FOREIGN, { excludedFrontends: "all", masqueradeToExcluded: true }, false],
  ["at a node's address", FOREIGN, { neutralAddresses: new Map([["10.244.1.5", new Set(["a"])]]) }, false],
  ["without endpoints", [], {}, false],
])("our pods on the way to %s", (_what, addresses, options, expected) => {
  expect(masquerades(addresses, options)).toBe(expected);
});

test("an annotation decides whose a service is, its endpoints where answers go", () => {
  expect(masquerades(OWN, {}, "foreign")).toBe(false);
  expect(masquerades(["192.0.2.5"], {}, "foreign")).toBe(true);
  expect(masquerades(FOREIGN, { masqueradeToExcluded: true }, "ours")).toBe(true);
  expect(masquerades(FOREIGN, {}, "ours")).toBe(false);
});

import type { Service } from "@fairlead/core";
import { expect, test } from "vitest";
import { API_SERVER, CIDRSides, createEndpointFilter, type FilterOptions, filterBySides } from "../src/index.ts";
import { endpointsAt, service } from "./service.ts";

const SERVICE = service();
const FOREIGN = { "fairlead.dev/ownership": "foreign" };
const kubernetes = (annotations = {}): Service => ({ ...SERVICE, name: "kubernetes", annotations });
const dns: Service = { ...SERVICE, namespace: "kube-system", name: "coredns", clusterDNS: true };
const OPTIONS = { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true } as const;
const rule = () => ({ ownership: "foreign", why: "rule" }) as const;
const THEIRS = ["10.16.0.5"];

/** Something learned excludes 10.16.0.0/16, and the operator wrote 10.17.0.0/16. */
function learned(options: Partial<FilterOptions> = {}, unprotected: readonly (typeof API_SERVER)[] = []) {
  const written = CIDRSides.of(["10.17.0.0/16"]);
  const services = new Set(["apps/vault" as const]);
  const protection = { services, unprotected: new Set(unprotected), written };
  return filterBySides(written.with("10.16.0.0/16", "excluded"), { ...OPTIONS, protection, ...options });
}

test("the API server's own Service is ours, whatever is listed, learned, ruled or remembered", () => {
  const listed = createEndpointFilter({ ...OPTIONS, excludeCIDRs: ["10.16.0.0/16"], rule });
  for (const filter of [listed, learned({ rule }), learned({ mixedServices: "skip" })]) {
    for (const addresses of [THEIRS, [...THEIRS, "10.144.0.1"], []]) {
      expect(filter.decide(kubernetes(), "IPv4", endpointsAt(addresses), "foreign")).toMatchObject({
        ownership: "ours",
        frontends: "all",
        decidedBy: "protected",
      });
    }
  }
});

test("sixteen API servers, wherever they are, are all endpoints of their Service", () => {
  const sixteen = Array.from({ length: 16 }, (_, at) => (at % 2 === 0 ? `10.16.0.${at}` : `198.51.100.${at}`));
  const listed = createEndpointFilter({ ...OPTIONS, excludeCIDRs: ["10.16.0.0/16"] });
  for (const filter of [listed, learned({ rule }), learned({ mixedServices: "skip" })]) {
    const decision = filter.decide(kubernetes(FOREIGN), "IPv4", endpointsAt(sixteen), "foreign");
    expect(decision).toMatchObject({ ownership: "ours", frontends: "all", ownEndpoints: 8, excludedEndpoints: 8 });
    expect(decision.excludes).toBeUndefined();
  }
});

test("a written list that has the API server in it is reported, a learned CIDR is not", () => {
  const listed = createEndpointFilter({ ...OPTIONS, excludeCIDRs: ["10.16.0.0/16"] });
  const problem = "the API server is in 10.16.0.0/16, which is excluded; its Service is answered here all the same";
  expect(listed.decide(kubernetes(), "IPv4", endpointsAt(THEIRS), undefined).problem).toBe(problem);
  expect(listed.decide(kubernetes(), "IPv4", endpointsAt(["10.144.0.1"]), undefined).problem).toBeUndefined();
  expect(listed.decide(SERVICE, "IPv4", endpointsAt(THEIRS), undefined).problem).toBeUndefined();
  expect(learned().decide(kubernetes(), "IPv4", endpointsAt(THEIRS), undefined).problem).toBeUndefined();
  expect(learned().decide(kubernetes(), "IPv4", endpointsAt(["10.17.0.5"]), undefined).problem).toContain(
    "10.17.0.0/16",
  );
  const left = learned({}, [API_SERVER]).decide(kubernetes(FOREIGN), "IPv4", endpointsAt(["10.17.0.5"]), undefined);
  expect(left.problem).toBeUndefined();
});

test("its annotation counts only with the operator's entry", () => {
  const ignored = learned().decide(kubernetes(FOREIGN), "IPv4", endpointsAt(THEIRS), undefined);
  expect(ignored).toMatchObject({
    ownership: "ours",
    problem: expect.stringContaining("default/kubernetes is protected"),
  });
  const left = learned({}, [API_SERVER]).decide(kubernetes(FOREIGN), "IPv4", endpointsAt(THEIRS), undefined);
  expect(left).toMatchObject({ ownership: "foreign", frontends: "none", decidedBy: "annotation" });
});

test.each([
  ["learned", {}, THEIRS, undefined],
  ["ruled", { rule }, ["10.144.0.1"], undefined],
  ["remembered", {}, [], "foreign"],
  ["mixed and skipped", { mixedServices: "skip" }, [...THEIRS, "10.144.0.1"], undefined],
  ["learned, while only its ClusterIP is left", { excludedFrontends: "cluster-ip" }, THEIRS, undefined],
  ["partly learned, partly written", {}, [...THEIRS, "10.17.0.5"], undefined],
] as const)("the cluster's DNS is answered for all but excluded clients: %s", (_what, options, addresses, memory) => {
  const vault: Service = { ...SERVICE, namespace: "apps", name: "vault" };
  for (const service of [dns, vault]) {
    const filter = learned(options);
    expect(filter.decide(service, "IPv4", endpointsAt(addresses), memory)).toMatchObject({
      ownership: "foreign",
      frontends: "all-but-excluded-clients",
      protected: true,
      why: expect.stringContaining("protected, so it is answered here"),
    });
    expect(filter.excludedClients?.("IPv4")).toEqual(["10.16.0.0/15"]);
    expect(filter.decide(SERVICE, "IPv4", endpointsAt(THEIRS), undefined)).not.toHaveProperty("protected");
  }
});

test("the operator's own list leaves DNS to the other network, as every other service", () => {
  expect(learned().decide(dns, "IPv4", endpointsAt(["10.17.0.5"]), undefined)).toMatchObject({
    frontends: "none",
    problem: expect.stringContaining("the cluster's DNS is left to another network"),
  });
  expect(learned().decide(dns, "IPv4", endpointsAt(["10.144.0.5"]), undefined)).not.toHaveProperty("problem");
  const listed = createEndpointFilter({ ...OPTIONS, excludeCIDRs: ["10.16.0.0/16"] });
  const decision = listed.decide(dns, "IPv4", endpointsAt(THEIRS), undefined);
  expect(decision).toMatchObject({ ownership: "foreign", frontends: "none" });
  expect(decision).not.toHaveProperty("protected");
  expect(listed).not.toHaveProperty("excludedClients");
});

test("so does the annotation of a user who may edit it", () => {
  const given = learned().decide({ ...dns, annotations: FOREIGN }, "IPv4", endpointsAt(["10.144.0.1"]), undefined);
  expect(given).toMatchObject({ frontends: "none", decidedBy: "annotation" });
});

import type { ServiceOwnership } from "@fairlead/core";
import { decodeService } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import type { CIDRReport } from "@fairlead/networks";
import { service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { ownershipReport } from "../src/index.ts";

const filter = createEndpointFilter({
  excludeCIDRs: ["10.16.0.0/16"],
  mixedServices: "own-endpoints",
  excludedFrontends: "all",
  ownershipAnnotation: true,
});
const { object: web } = decodeService(service("web", { clusterIPs: ["10.96.0.1"], ports: [{ port: 80 }] }));

function ownership(...addresses: readonly string[]): ServiceOwnership {
  if (web === undefined) throw new Error("it was just made");
  const endpoints = addresses.map((address) => ({ address }));
  return { service: "default/web", family: "IPv4", decision: filter.decide(web, "IPv4", endpoints, undefined) };
}

const SAID: CIDRReport = {
  cidr: "10.16.0.0/16",
  side: "excluded",
  source: "kube-ovn-subnets",
  objects: ["Subnet/ovn-default"],
  stage: "effective",
  since: "2030-01-02T00:00:00.000Z",
};

test("a row names the objects that say the CIDRs that decide, and since when", () => {
  const cidrs = [
    SAID,
    { ...SAID, source: "other", objects: ["Pool/a"], since: "2030-01-01T00:00:00.000Z" },
    { ...SAID, source: "third", objects: ["Pool/held"], stage: "held" as const },
    { ...SAID, side: "own" as const, objects: ["IPPool/ours"] },
  ];
  const { services } = ownershipReport([ownership("10.16.0.5")], { cidrs });
  expect(services[0]?.learnedFrom).toEqual([
    { cidr: "10.16.0.0/16", objects: ["Subnet/ovn-default", "Pool/a"], since: "2030-01-01T00:00:00.000Z" },
  ]);
});

test("what was written has none, nor has a service in no such CIDR", () => {
  expect(ownershipReport([ownership("10.16.0.5")]).services[0]).not.toHaveProperty("learnedFrom");
  expect(ownershipReport([ownership("10.17.0.5")], { cidrs: [SAID] }).services[0]).not.toHaveProperty("learnedFrom");
});

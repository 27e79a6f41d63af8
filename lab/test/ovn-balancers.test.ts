import { familyOf } from "@fairlead/base";
import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { expect, test } from "vitest";
import { balancerCommands } from "../src/cni/ovn/controller/balancers.ts";

const OPTIONS = { podCIDRs: ["10.244.0.0/16", "fd00:244::/48"], switches: ["pods-1", "pods-2"] };
const LEAVE = { verdict: "leave" } as const;

function group(address: string, cluster: readonly PlanEndpoint[]): ServicePortGroup {
  return {
    id: "default/web/tcp",
    name: "default/web",
    service: "default/web",
    family: familyOf(address),
    protocol: "TCP",
    cluster,
    local: [],
    serving: cluster,
    endpointCount: cluster.length,
    frontends: [
      {
        kind: "cluster-ip",
        reach: "internal",
        at: "address",
        address,
        port: 80,
        policy: "Cluster",
        treatments: { pod: LEAVE, node: LEAVE, outside: LEAVE },
      },
    ],
    annotations: {},
  };
}

const endpoint = (address: string): PlanEndpoint => ({ address, port: 8080, local: false });
const REMOVED = [["--if-exists", "lb-del", "IPv4/default/web/tcp"]];

test("a service whose endpoints are all OVN's gets a load balancer on every switch", () => {
  const after = group("10.96.0.9", [endpoint("10.244.1.11"), endpoint("10.244.2.11")]);
  expect(balancerCommands([{ after }], OPTIONS)).toEqual([
    ...REMOVED,
    ["lb-add", "IPv4/default/web/tcp", "10.96.0.9:80", "10.244.1.11:8080,10.244.2.11:8080", "tcp"],
    ["ls-lb-add", "pods-1", "IPv4/default/web/tcp"],
    ["ls-lb-add", "pods-2", "IPv4/default/web/tcp"],
  ]);
});

test("IPv6 addresses are bracketed", () => {
  const after = group("fd00:10:96::9", [endpoint("fd00:244::1:b")]);
  expect(balancerCommands([{ after }], OPTIONS)).toContainEqual([
    "lb-add",
    "IPv6/default/web/tcp",
    "[fd00:10:96::9]:80",
    "[fd00:244::1:b]:8080",
    "tcp",
  ]);
});

test("with one endpoint of somebody else, with none, or gone, it has none", () => {
  const mixed = group("10.96.0.9", [endpoint("10.244.1.11"), endpoint("10.144.1.11")]);
  const before = group("10.96.0.9", [endpoint("10.244.1.11")]);
  expect(balancerCommands([{ before, after: mixed }], OPTIONS)).toEqual(REMOVED);
  expect(balancerCommands([{ before, after: group("10.96.0.9", []) }], OPTIONS)).toEqual(REMOVED);
  expect(balancerCommands([{ before }], OPTIONS)).toEqual(REMOVED);
});

import type { ForwardingPlan, PlanEndpoint } from "@fairlead/core";
import { parseSetCommand, renderSetCommand } from "@fairlead/netfilter";
import { endpointSlice, goldenNode, service, TestCluster } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { createIpvsBackend, setDefinition } from "../src/index.ts";
import { FakeNode } from "./support/fake-node.ts";
import { plannerOptions } from "./support/world.ts";

/** More than ipset and kube-proxy give a set. */
const MEMBERS = 66_000;

/** A plan with that many endpoints on the node, which KUBE-LOOP-BACK has to hold. */
function largePlan(): ForwardingPlan {
  const cluster = new TestCluster(plannerOptions(goldenNode(false)));
  const ports = [{ name: "main", port: 80, targetPort: 8080 }];
  const endpoints = [{ address: "10.144.0.8" }];
  cluster.put(
    service("web", { clusterIPs: ["10.96.0.13"], ports }),
    endpointSlice("web", { service: "web", family: "IPv4", ports: [{ name: "main", port: 8080 }], endpoints }),
  );
  cluster.replan();
  const { family, node, healthChecks, foreignClusterIPs, endpointCount, groups } = cluster.plan("IPv4");
  const onNode = Array.from({ length: MEMBERS }, (_, n): PlanEndpoint => {
    return { address: `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`, port: 8080, local: true };
  });
  const large = Array.from(groups, ([id, group]) => [id, { ...group, onNode }] as const);
  return { family, node, healthChecks, foreignClusterIPs, endpointCount, groups: new Map(large) };
}

test("a set has room for what the plan needs", async () => {
  const node = new FakeNode();
  const { refused } = await createIpvsBackend(node.port("IPv4")).sync(largePlan());
  expect(refused).toBeUndefined();
  const rooms = node.sets.sets().map(({ name, members }) => [name, members.size] as const);
  expect(new Map(rooms).get("KUBE-LOOP-BACK")).toBe(MEMBERS);
});

test("other sets are made as kube-proxy makes them", () => {
  const line = (members: number) =>
    renderSetCommand({ kind: "create", set: setDefinition("KUBE-CLUSTER-IP", "IPv4", members) });
  expect(line(49_152)).toBe("create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536");
  expect(line(MEMBERS)).toBe("create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 262144");
  expect(renderSetCommand(parseSetCommand(line(MEMBERS)))).toBe(line(MEMBERS));
  expect(setDefinition("KUBE-NODE-PORT-TCP", "IPv4", MEMBERS)).toEqual({
    name: "KUBE-NODE-PORT-TCP",
    type: "bitmap:port",
  });
});

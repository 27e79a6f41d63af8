import { endpointSlice, goldenNode, service, TestCluster } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { createIpvsBackend } from "../src/index.ts";
import { FakeNode } from "./support/fake-node.ts";
import { plannerOptions } from "./support/world.ts";

const OTHER = "192.0.2.100";
const LOAD_BALANCER = "198.51.100.7";

/** A Service at the address of another node and at one that no node has. */
const web = [
  service("web", {
    clusterIPs: ["10.96.0.13"],
    externalIPs: [OTHER, LOAD_BALANCER],
    ports: [{ name: "main", port: 80, targetPort: 8080 }],
  }),
  endpointSlice("web", {
    service: "web",
    family: "IPv4",
    ports: [{ name: "main", port: 8080 }],
    endpoints: [{ address: "10.144.0.8" }],
  }),
];

function options(...otherNodes: string[]) {
  return plannerOptions(goldenNode(false), {
    nodeAddresses: { IPv4: ["10.201.0.10"] },
    otherNodes: { IPv4: otherNodes },
  });
}

function bound(node: FakeNode): string[] {
  return [...(node.links.device("kube-ipvs0") ?? [])].sort();
}

test("the address of another node is not this node's own, and its virtual server serves", async () => {
  const node = new FakeNode();
  const cluster = new TestCluster(options(OTHER));
  cluster.put(...web);
  cluster.replan();
  await createIpvsBackend(node.port("IPv4")).sync(cluster.plan("IPv4"));
  expect(bound(node)).toEqual(["10.96.0.13", LOAD_BALANCER]);
  const servers = node.servers.servers().map(({ address, port }) => `${address}:${port}`);
  expect(servers.sort()).toEqual(["10.96.0.13:80", `${OTHER}:80`, `${LOAD_BALANCER}:80`]);
  expect(node.sets.sets().find(({ name }) => name === "KUBE-IPVS-IPS")?.members).toEqual(
    new Set(["10.96.0.13", LOAD_BALANCER]),
  );
});

test("a node that comes takes its address off the service device, without a full sync", async () => {
  const node = new FakeNode();
  const cluster = new TestCluster(options());
  cluster.put(...web);
  cluster.replan();
  const backend = createIpvsBackend(node.port("IPv4"));
  await backend.sync(cluster.plan("IPv4"));
  expect(bound(node)).toContain(OTHER);
  for (const others of [[OTHER], []]) {
    cluster.setOptions(options(...others));
    const change = cluster.replan().changes.get("IPv4");
    if (change === undefined) throw new Error("the plan is as it was");
    expect((await backend.apply(cluster.plan("IPv4"), change)).kind).toBe("partial");
    expect(bound(node).includes(OTHER)).toBe(others.length === 0);
  }
});

import { HCN_CODES } from "@fairlead/kernel/hcn";
import { service } from "@fairlead/testkit";
import { hcnOf } from "@fairlead/testkit/hcn";
import { webState } from "@fairlead/testkit/histories";
import { describe, expect, test } from "vitest";
import { WindowsNode } from "./support/played.ts";
import { caseOf, SlotsNode } from "./support/world.ts";

const l2bridge = caseOf("l2bridge");
const overlay = caseOf("overlay");

async function started(of = l2bridge): Promise<WindowsNode> {
  const node = new WindowsNode(of);
  node.put(...(of.steps[0]?.put ?? []));
  await node.sync();
  return node;
}

describe("calls", () => {
  test("one endpoint more: an endpoint and a change of the load balancer, whatever else there is", async () => {
    const node = await started();
    const before = node.hcn.calls.length;
    node.put(...(l2bridge.steps[1]?.put ?? []));
    await node.sync();
    expect(node.hcn.calls.slice(before).map(({ call }) => call)).toEqual([
      "HcnOpenNetwork",
      "HcnCreateEndpoint",
      "HcnCloseEndpoint",
      "HcnCloseNetwork",
      "HcnOpenLoadBalancer",
      "HcnModifyLoadBalancer",
      "HcnCloseLoadBalancer",
    ]);
  });

  test("before HNS 15.5 the load balancer is deleted and made", async () => {
    const node = await started(caseOf("l2bridge-hns13"));
    const before = node.hcn.writes.length;
    node.put(...(l2bridge.steps[1]?.put ?? []));
    await node.sync();
    expect(node.hcn.writes.slice(before).map(({ call }) => call)).toEqual([
      "HcnCreateEndpoint",
      "HcnDeleteLoadBalancer",
      "HcnCreateLoadBalancer",
    ]);
  });

  test("where HNS turns out not to modify, nothing asks for it again", async () => {
    const node = await started();
    node.hcn.fail("HcnModifyLoadBalancer", HCN_CODES.notImplemented, 5);
    for (const step of [1, 2]) {
      node.put(...(l2bridge.steps[step]?.put ?? []));
      await node.sync();
    }
    expect(node.hcn.calls.filter(({ call }) => call === "HcnModifyLoadBalancer")).toHaveLength(1);
    expect(node.state).toContain("balancer 10.96.0.10 80/6 to 10.244.1.10,10.244.2.20 port 8080 flags 1 mapping 0");
  });
});

describe("what HCN refuses", () => {
  test("costs its service, is reported, and is tried again", async () => {
    const node = new WindowsNode(l2bridge);
    node.put(...(l2bridge.steps[0]?.put ?? []));
    node.hcn.fail("HcnCreateLoadBalancer", 0x803b001e);
    const [report] = await node.sync();
    expect(report?.refused).toEqual([
      "load balancer 10.96.0.10 6/80 IPv4 of default/web:p: HcnCreateLoadBalancer: 0x803b001e",
    ]);
    expect(await node.check()).toEqual(report?.refused);
    expect(node.state).toContain("balancer 203.0.113.9 80/6 to 10.244.1.10,10.244.2.20 port 8080 flags 0 mapping 16");
    expect(await node.check()).toEqual([]);
  });

  test("where HNS does not run, the sync fails", async () => {
    const node = new WindowsNode(l2bridge);
    node.put(...(l2bridge.steps[0]?.put ?? []));
    node.hcn.fail("HcnCreateLoadBalancer", HCN_CODES.notRunning);
    await expect(node.sync()).rejects.toThrow("the Host Network Service (hns) is not running");
  });

  test("a frontend that another program took is a service's again", async () => {
    const node = await started();
    const taken = { FrontendVIPs: ["10.96.0.99"], PortMappings: [{ Protocol: 6, InternalPort: 1, ExternalPort: 80 }] };
    node.hcn.objects.LoadBalancer.set("1b000000-0000-4000-8000-0000000000ff", {
      ID: "1b000000-0000-4000-8000-0000000000ff",
      ...taken,
    });
    node.put(service("late", { clusterIPs: ["10.96.0.99"], ports: [{ name: "p", port: 80, targetPort: 8080 }] }));
    node.put(...(l2bridge.steps[0]?.put ?? []).filter(({ metadata }) => metadata.name === "web-1").map(late));
    await node.sync();
    expect(node.state).toContain("balancer 10.96.0.99 80/6 to 10.244.1.10,10.244.2.20 port 8080 flags 1 mapping 0");
  });
});

function late(slice: NonNullable<(typeof l2bridge)["steps"][0]["put"]>[number]) {
  return {
    ...slice,
    metadata: { ...slice.metadata, name: "late-1", labels: { "kubernetes.io/service-name": "late" } },
  };
}

describe("what others do to HCN", () => {
  test("a load balancer that is gone is found and made again", async () => {
    const node = await started();
    const whole = node.state;
    const [[id = ""] = []] = [...node.hcn.objects.LoadBalancer];
    node.hcn.objects.LoadBalancer.delete(id);
    expect(await node.check()).toEqual([expect.stringMatching(/^load balancer .* is gone$/)]);
    expect(node.state).toEqual(whole);
  });

  test("a pod's endpoint that comes after its service is put behind it", async () => {
    const node = await started();
    const [pod] = hcnOf(l2bridge).endpoints;
    const late = {
      ...pod,
      ID: "e0000000-0000-4000-8000-0000000000c7",
      IpConfigurations: [{ IpAddress: "10.244.1.77" }],
    };
    node.hcn.objects.Endpoint.set(late.ID, { HostComputeNetwork: "", ...late });
    expect(await node.check()).toEqual(["endpoints of 10.244.1.77 may be there now"]);
    expect(node.state).toContain("balancer 10.96.0.29 80/6 to 10.244.1.77,10.244.2.20 port 8080 flags 1 mapping 0");
    expect(await node.check()).toEqual([]);
  });

  test("of two remote endpoints with one address one goes, and load balancers lead to the other", async () => {
    const node = await started();
    const whole = node.state;
    const { Endpoint, LoadBalancer } = node.hcn.objects;
    const remote = [...Endpoint.values()].find(({ IpConfigurations: [at] = [] }) => at?.IpAddress === "10.244.2.20");
    const first = "e0000000-0000-4000-8000-0000000000d1";
    if (remote === undefined) throw new Error("the case has no remote endpoint");
    const others = [...Endpoint];
    Endpoint.clear();
    for (const [id, one] of [[first, { ...remote, ID: first }] as const, ...others]) Endpoint.set(id, one);
    const again = new WindowsNode(l2bridge, { hcn: node.hcn });
    again.put(...(l2bridge.steps[0]?.put ?? []));
    await again.sync();
    expect(again.state).toEqual(whole);
    expect([Endpoint.has(first), Endpoint.has(remote.ID)]).toEqual([true, false]);
    expect([...LoadBalancer.values()].some(({ HostComputeEndpoints: ids = [] }) => ids.includes(remote.ID))).toBe(
      false,
    );
  });

  test("a network that was made anew gets all objects anew", async () => {
    const node = await started();
    const whole = node.state;
    const { objects } = node.hcn;
    const [network] = objects.Network.values();
    objects.Network.clear();
    objects.LoadBalancer.clear();
    const id = "0e000000-0000-4000-8000-0000000000cc";
    if (network !== undefined) objects.Network.set(id, { ...network, ID: id });
    for (const [key, one] of [...objects.Endpoint]) {
      if (one.Flags === 1) objects.Endpoint.delete(key);
      else objects.Endpoint.set(key, { ...one, HostComputeNetwork: id });
    }
    expect(await node.check()).toEqual(["HCN network cbr0 was made anew"]);
    expect(node.state).toEqual(whole);
  });

  test("without the network the sync says what is missing", async () => {
    const node = new WindowsNode(l2bridge);
    node.hcn.objects.Network.clear();
    node.put(...(l2bridge.steps[0]?.put ?? []));
    await expect(node.sync()).rejects.toThrow("there is no HCN network cbr0: the CNI plugin makes it");
  });

  test("capitals in ids are no difference", async () => {
    const node = new SlotsNode();
    await node.change([[1, webState()]]);
    for (const [id, one] of [...node.hcn.objects.LoadBalancer]) {
      const HostComputeEndpoints = (one.HostComputeEndpoints ?? []).map((text) => text.toUpperCase());
      node.hcn.objects.LoadBalancer.set(id, { ...one, HostComputeEndpoints });
    }
    const again = new SlotsNode(node.hcn);
    again.world.change(node.world.slots);
    const before = node.hcn.writes.length;
    await again.backend.sync(again.world.plan);
    expect(node.hcn.writes.slice(before)).toEqual([]);
  });
});

describe("on an overlay", () => {
  test("a node that joined is found where its pods are", async () => {
    const node = await started(overlay);
    const [network] = node.hcn.objects.Network.values();
    const joined = { DestinationPrefix: "10.244.3.0/24", ProviderAddress: "192.0.2.3" };
    if (network !== undefined) {
      const Policies = [...(network.Policies ?? []), { Type: "RemoteSubnetRoute", Settings: joined }];
      node.hcn.objects.Network.set(network.ID, { ...network, Policies });
    }
    const [web, slice] = overlay.steps[1]?.put ?? [];
    const endpoints = [{ addresses: ["10.244.3.30"], conditions: { ready: true }, nodeName: "win-3" }];
    if (web !== undefined && slice !== undefined) node.put(web, { ...slice, endpoints });
    await node.sync();
    expect(node.state).toContain("endpoint 10.244.3.30 flags 1 mac 02-11-0a-f4-03-1e at 192.0.2.3");
  });

  test.each([
    ["sourceVip", { sourceVip: "" }, "winkernel.sourceVip is empty"],
    ["the node's address", { nodeAddress: async () => undefined }, "set bindAddress to it"],
    ["IPv4", { family: "IPv6" }, "Windows has no IPv6 on overlay networks"],
  ] as const)("it needs %s", async (_, options, message) => {
    const node = new WindowsNode(overlay, { options });
    node.put(...(overlay.steps[0]?.put ?? []));
    await expect(node.sync()).rejects.toThrow(message);
  });
});

test("endpoints of one service with different ports: the problem is named", async () => {
  const node = new WindowsNode(l2bridge);
  const [web, slice] = l2bridge.steps[0]?.put ?? [];
  if (web === undefined || slice === undefined) throw new Error("the case has no service");
  const other = { ...slice, metadata: { ...slice.metadata, name: "web-2" } };
  node.put(web, slice, {
    ...other,
    ports: [{ name: "p", port: 9090, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.244.2.21"], conditions: { ready: true }, nodeName: "win-2" }],
  });
  await node.sync();
  expect(node.problems).toEqual([
    "default/web:p: its endpoints have different ports; Windows sends all of its clients to port 9090, not to 8080",
  ]);
});

test("both families on one network: a full sync of one leaves what the other has", async () => {
  const dual = caseOf("l2bridge-dual");
  const node = await started(dual);
  const whole = node.state;
  await node.sync("full");
  expect(node.state).toEqual(whole);
  expect(whole.filter((line) => line.includes("gone"))).toEqual([]);
});

test("a network without a name is refused", () => {
  expect(() => new WindowsNode(l2bridge, { options: { networkName: "" } })).toThrow(RangeError);
});

test("a service of another network has no load balancer", async () => {
  const foreign = (name: string) => name === "web";
  const node = new WindowsNode(overlay, {
    planner: {
      filter: {
        decide: ({ name }) => ({
          ownership: foreign(name) ? "foreign" : "ours",
          frontends: foreign(name) ? "none" : "all",
          decided: true,
          why: "",
          decidingCIDRs: [],
          ownEndpoints: 0,
          excludedEndpoints: 0,
        }),
      },
    },
  });
  node.put(...(overlay.steps[0]?.put ?? []));
  await node.sync();
  expect(node.state.filter((line) => line.includes("10.96.0.10 "))).toEqual([]);
  expect(node.state.some((line) => line.includes("10.96.0.11 "))).toBe(true);
});

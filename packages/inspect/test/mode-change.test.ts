import { endpointSlice, type GoldenNode, type RawObject, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { type Mode, type ModeFinding, modeChange, type SeenNode } from "../src/index.ts";
import { sideOf } from "./support/scenario.ts";

const node: GoldenNode = {
  name: "node-a",
  addresses: ["192.0.2.10", "198.51.100.10", "10.201.0.10"],
  clusterCIDRs: ["10.144.0.0/16"],
  serviceCIDRs: ["10.96.0.0/16"],
  zone: "a",
};

/** With one endpoint here and one elsewhere. */
function web(more: Partial<Parameters<typeof service>[1]> = {}, ready = true): readonly RawObject[] {
  const name = "web";
  const options = { namespace: "shop", clusterIPs: ["10.96.0.10"], ports: [{ port: 80, nodePort: 30_080 }] };
  return [
    service(name, { ...options, ...more }),
    endpointSlice("web-1", {
      namespace: "shop",
      service: name,
      family: "IPv4",
      ports: [{ port: 8080 }],
      endpoints: ready
        ? [
            { address: "10.144.1.5", nodeName: "node-a" },
            { address: "10.144.2.6", nodeName: "node-b" },
          ]
        : [],
    }),
  ];
}

interface Case {
  readonly objects?: readonly RawObject[];
  readonly from?: Mode;
  readonly to?: Mode;
  readonly flags?: readonly string[];
  readonly seen?: SeenNode;
}

async function findings({ objects = web(), from = "iptables", to = "nftables", flags = [], seen = {} }: Case = {}) {
  const scenario = { objects, node };
  const [before, after] = [await sideOf(scenario, { mode: from, flags }), await sideOf(scenario, { mode: to, flags })];
  return modeChange({ before, after, seen });
}

async function about(topic: string, one: Case = {}): Promise<ModeFinding | undefined> {
  return (await findings(one)).find((found) => found.topic === topic);
}

test("a mode and itself are the same", async () => {
  for (const mode of ["iptables", "ipvs", "nftables"] as const) {
    const all = await findings({ from: mode, to: mode, seen: { kernel: "6.1.0" } });
    expect(all.filter(({ state }) => state !== "fits")).toEqual([]);
  }
});

describe("node ports", () => {
  const topic = "node ports, IPv4";

  test("nftables mode serves them at the primary address only, unless it is said otherwise", async () => {
    expect(await about(topic, { seen: { addresses: node.addresses } })).toEqual({
      topic,
      state: "differs",
      found: expect.stringMatching(/then at 192\.0\.2\.10; no longer at 198\.51\.100\.10, 10\.201\.0\.10$/),
      advice: expect.stringContaining("nodePortAddresses: [all]"),
      services: ["shop/web"],
    });
    expect(await about(topic, { flags: ["--nodeport-addresses=all"] })).toBeUndefined();
    expect(await about(topic, { objects: web({ ports: [{ port: 80 }] }) })).toBeUndefined();
  });

  test("a node with one address loses none; what other addresses it has is not made up", async () => {
    expect(await about(topic, { seen: { addresses: ["192.0.2.10", "127.0.0.1", "fe80::1"] } })).toMatchObject({
      state: "fits",
    });
    const unknown = await about(topic);
    expect(unknown).toMatchObject({ state: "differs", services: ["shop/web"] });
    expect(unknown?.found).not.toContain("no longer at");
  });
});

describe("node ports on localhost", () => {
  const topic = "node ports on localhost";

  test.each<[SeenNode, ModeFinding["state"], RegExp]>([
    [{}, "differs", /is not known: kubeproxy_iptables_localhost_nodeports_accepted_packets_total counts it/],
    [{ localhostPackets: 7 }, "differs", /7 packets were counted there: it is used/],
    [{ localhostPackets: 0 }, "fits", /no packet was counted/],
  ])("by the counter %j: %s", async (seen, state, text) => {
    const found = await about(topic, { seen });
    expect(found).toMatchObject({ state, services: ["shop/web"] });
    expect(found?.found).toMatch(text);
  });

  test("none are lost where they are turned off, or relayed in nftables mode", async () => {
    expect(await about(topic, { flags: ["--iptables-localhost-nodeports=false"] })).toBeUndefined();
    const relayed = [
      "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true",
      "--nodeport-addresses=primary,localhost",
    ];
    expect(await about(topic, { flags: relayed })).toBeUndefined();
  });

  test("ipvs mode has none to lose", async () => {
    expect(await about(topic, { from: "ipvs" })).toBeUndefined();
  });
});

describe("policies", () => {
  const local = { type: "LoadBalancer", externalTrafficPolicy: "Local", ingress: [{ ip: "203.0.113.9" }] } as const;

  test("iptables and nftables mode treat every client alike", async () => {
    expect(await about("services", { objects: web(local) })).toEqual({
      topic: "services",
      state: "fits",
      found: "every client reaches the same endpoints",
    });
  });

  test("ipvs mode has no short cut under policy Local", async () => {
    const all = (await findings({ objects: web(local), from: "ipvs" })).filter(({ topic }) => topic === "services");
    expect(all.map(({ found, services }) => [found, services])).toEqual([
      [expect.stringMatching(/^pods of the node: endpoints on the node → all endpoints, at /), ["shop/web"]],
      [
        expect.stringMatching(/^the node itself: endpoints on the node → all endpoints, masqueraded, at /),
        ["shop/web"],
      ],
    ]);
  });

  test("a service without endpoints: no answer in ipvs mode, refused in nftables mode", async () => {
    const [first] = (await findings({ objects: web({}, false), from: "ipvs" })).filter(
      ({ topic }) => topic === "services",
    );
    expect(first?.found).toMatch(/no answer → refused/);
  });
});

describe("balancing", () => {
  const scheduled = (scheduler: string) => ({ from: "ipvs" as const, flags: [`--ipvs-scheduler=${scheduler}`] });

  test.each<[string, ModeFinding["state"], RegExp]>([
    ["rr", "fits", /^scheduler rr of 1 service: by chance, with the same shares$/],
    ["sh", "differs", /its equal is the annotation fairlead\.dev\/balance: source-hash on the Service/],
    ["mh", "differs", /its equal is the annotation/],
    ["lc", "differs", /keep ipvs mode for as long as you need it: it stays in Fairlead/],
  ])("scheduler %s", async (scheduler, state, text) => {
    const found = await about("balancing", scheduled(scheduler));
    expect(found?.state).toBe(state);
    expect(`${found?.found} ${found?.advice ?? ""}`.trim()).toMatch(text);
  });

  test("a Service may name its own, and iptables mode has none", async () => {
    const objects = web({ annotations: { "fairlead.dev/ipvs-scheduler": "lc" } });
    expect(await about("balancing", { objects, from: "ipvs" })).toMatchObject({ services: ["shop/web"] });
    expect(await about("balancing", { objects })).toBeUndefined();
  });
});

test("session affinity is kept, and the other mode does not know which client had which endpoint", async () => {
  const objects = web({ affinitySeconds: 600 });
  expect(await about("affinity", { objects })).toMatchObject({ state: "differs", services: ["shop/web"] });
  expect(await about("affinity")).toBeUndefined();
});

test("ports that no service has at a ClusterIP are refused then", async () => {
  expect((await about("ClusterIPs"))?.found).toMatch(/default route now, and are then refused/);
  expect((await about("ClusterIPs", { from: "ipvs" }))?.found).toMatch(/programs of the node .* answer/);
  expect(await about("ClusterIPs", { from: "nftables", to: "iptables" })).toBeUndefined();
});

describe("the kernel", () => {
  test.each<[SeenNode, ModeFinding["state"] | undefined]>([
    [{}, undefined],
    [{ kernel: "5.12.19" }, "blocks"],
    [{ kernel: "4.19.0-27-amd64" }, "blocks"],
    [{ kernel: "5.13.0" }, "differs"],
    [{ kernel: "5.15.0-91-generic", invalidPackets: 0 }, "fits"],
    [{ kernel: "5.15.0-91-generic", invalidPackets: 3 }, "differs"],
    [{ kernel: "6.1.0-44-amd64" }, "fits"],
    [{ kernel: "odd" }, "fits"],
  ])("%j: %s", async (seen, state) => {
    expect((await about("kernel", { seen }))?.state).toBe(state);
  });

  test("nothing is in the way back", async () => {
    expect(await about("kernel", { from: "nftables", to: "iptables", seen: { kernel: "4.19.0" } })).toBeUndefined();
  });
});

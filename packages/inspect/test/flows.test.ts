import { endpointSlice, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { flowAttribution, readRelays, type TrackedConnection, trafficByService } from "../src/index.ts";
import { planned } from "./support/scenario.ts";

const NODE = "10.201.0.10";
const NODE_FACTS = {
  name: "node-a",
  zone: "a",
  addresses: [NODE],
  clusterCIDRs: ["10.144.0.0/16"],
  serviceCIDRs: ["10.96.0.0/12"],
};
const PODS = [
  { address: "10.144.1.5", nodeName: "node-a" },
  { address: "10.144.2.6", nodeName: "node-b", ready: false, serving: true, terminating: true },
  { address: "10.144.2.7", ready: false },
];
const objects = [
  service("web", {
    type: "NodePort",
    clusterIPs: ["10.96.0.10"],
    externalIPs: ["192.0.2.9"],
    ports: [{ name: "http", port: 80, nodePort: 30_080 }],
  }),
  endpointSlice("web-1", { service: "web", family: "IPv4", ports: [{ name: "http", port: 8080 }], endpoints: PODS }),
  service("theirs", { type: "NodePort", clusterIPs: ["10.96.0.20"], ports: [{ port: 80, nodePort: 30_081 }] }),
  endpointSlice("theirs-1", {
    service: "theirs",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.244.0.5" }],
  }),
];

async function attribution() {
  const flags = ["--exclude-cluster-cidr=10.244.0.0/16"];
  return flowAttribution(await planned({ objects, node: NODE_FACTS }, { flags }), new Set([NODE]));
}

/** A connection of a pod, `address:port` to `address:port`, and what answers it. */
function connection(to: string, answers: string, more: Partial<TrackedConnection> = {}): TrackedConnection {
  const [destination = "", port = ""] = to.split(":");
  const [source = "", answering = ""] = answers.split(":");
  return {
    family: "IPv4",
    protocol: "TCP",
    original: { source: "10.144.1.9", sourcePort: 40_000, destination, destinationPort: Number(port) },
    reply: { source, sourcePort: Number(answering), destination: "10.144.1.9", destinationPort: 40_000 },
    replied: true,
    ...more,
  };
}

describe("whose a connection is", () => {
  test.each([
    ["10.96.0.10:80", "10.144.1.5:8080", "cluster-ip", "ready"],
    ["10.96.0.10:80", "10.144.2.6:8080", "cluster-ip", "terminating"],
    ["192.0.2.9:80", "10.144.2.7:8080", "external-ip", "not-ready"],
    [`${NODE}:30080`, "10.144.9.9:8080", "node-port", "gone"],
    // The endpoint's address is there, but not with that port.
    ["10.96.0.10:80", "10.144.1.5:9090", "cluster-ip", "gone"],
  ])("%s answered by %s", async (to, answers, kind, condition) => {
    const flow = (await attribution())(connection(to, answers, { state: "ESTABLISHED", expires: 431_999 }));
    const [address, port] = answers.split(":");
    expect(flow).toMatchObject({
      service: "default/web",
      port: "http",
      owner: "ours",
      frontend: { kind },
      endpoint: { address, port: Number(port), condition },
      state: "ESTABLISHED",
      expires: 431_999,
    });
  });

  test("what another network serves is reported as its own, with no endpoint where it is not translated here", async () => {
    const flow = (await attribution())(connection("10.96.0.20:80", "10.96.0.20:80"));
    expect(flow).toMatchObject({ service: "default/theirs", owner: "foreign" });
    expect(flow).not.toHaveProperty("endpoint");
  });

  test.each<[what: string, to: string, answers: string, protocol?: TrackedConnection["protocol"]]>([
    ["a pod by its own address", "10.144.1.5:8080", "10.144.1.5:8080"],
    ["another port of a ClusterIP", "10.96.0.10:81", "10.96.0.10:81"],
    ["a node port's number at another host", "198.51.100.7:30080", "198.51.100.7:30080"],
    ["a program of the host at a node port's number", `${NODE}:30080`, `${NODE}:30080`],
    ["another protocol", "10.96.0.10:80", "10.144.1.5:8080", "UDP"],
  ])("no service's: %s", async (_what, to, answers, protocol = "TCP") => {
    expect((await attribution())(connection(to, answers, { protocol }))).toBeUndefined();
  });
});

describe("userspace mode", () => {
  const relay = { address: NODE, port: 20_001 };
  const joined = (port: number) => ({
    connection: {
      protocol: "TCP",
      client: { address: "10.144.1.9", port },
      relay,
      endpoint: { address: "10.144.1.5", port: 8080 },
    },
  });
  const page = [{ listening: { protocol: "TCP", ...relay } }, joined(40_000)].map((one) => `${JSON.stringify(one)}\n`);
  const through = connection("10.96.0.10:80", `${NODE}:20001`);

  test("the endpoint is the one that the relay has given", async () => {
    const flow = (await attribution())(through, readRelays(page.join("")));
    expect(flow).toMatchObject({ relayed: true, endpoint: { address: "10.144.1.5", port: 8080, condition: "ready" } });
  });

  test("one that the relay does not know any more has no endpoint, and does not hang", async () => {
    const { reply } = through;
    const ended = { ...through, reply: { ...reply, destinationPort: 40_001 } };
    const flow = (await attribution())(ended, readRelays(page.join("")));
    expect(flow).toMatchObject({ relayed: true, service: "default/web" });
    expect(flow).not.toHaveProperty("endpoint");
    expect(trafficByService(flow === undefined ? [] : [flow])).toMatchObject([
      { gone: 0, endpoints: [{ relayed: true }] },
    ]);
  });

  test("one that hangs on a relay that is gone", async () => {
    const flow = (await attribution())(through, readRelays(""));
    expect(flow).toMatchObject({ endpoint: { ...relay, condition: "gone" } });
    expect(flow).not.toHaveProperty("relayed");
  });

  test.each([
    ["no JSON", "404 page not found\n"],
    ["no address", '{"listening":{"protocol":"TCP","address":"web","port":80}}\n'],
    ["no port", '{"listening":{"protocol":"TCP","address":"10.0.0.1"}}\n'],
    ["no protocol", '{"listening":{"address":"10.0.0.1","port":80}}\n'],
  ])("a page that is something else: %s", (_what, text) => {
    expect(() => readRelays(text)).toThrow(SyntaxError);
  });
});

test("connections are summed up by service port and endpoint, those that hang counted", async () => {
  const whose = await attribution();
  const volume = (bytes: number) => ({ sent: { bytes, packets: 2 }, received: { bytes: 10 * bytes, packets: 3 } });
  const connections = [
    connection("10.96.0.10:80", "10.144.1.5:8080", volume(100)),
    connection(`${NODE}:30080`, "10.144.1.5:8080", volume(50)),
    connection("10.96.0.10:80", "10.144.9.9:8080", { ...volume(1), replied: false }),
    connection("10.96.0.20:80", "10.244.0.5:80"),
  ];
  const flows = connections.flatMap((one) => whose(one) ?? []);
  expect(trafficByService(flows)).toMatchObject([
    {
      service: "default/web",
      connections: 3,
      unreplied: 1,
      gone: 1,
      sent: { bytes: 151, packets: 6 },
      received: { bytes: 1_510 },
      endpoints: [
        { endpoint: { address: "10.144.1.5", condition: "ready" }, connections: 2 },
        { endpoint: { address: "10.144.9.9", condition: "gone" }, connections: 1, unreplied: 1 },
      ],
    },
    { service: "default/theirs", owner: "foreign", connections: 1, gone: 0 },
  ]);
});

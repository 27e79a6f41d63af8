import { objectAt, textAt } from "@fairlead/base";
import { until, VirtualClock } from "@fairlead/base/testing";
import type { HealthCheck } from "@fairlead/core";
import { componentOf, type NodeEvent, NodeEvents, type NodeEventsParts, serviceUID } from "@fairlead/intake";
import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { eventFollower, healthCheckNotListening, serverNotListening } from "../src/events.ts";
import { routes } from "../src/http/app.ts";
import { listen } from "../src/http/listen.ts";
import type { FamilyOutcome } from "../src/sync/family-sync.ts";
import { recordedLog, runOf, SYNCED } from "./support/fake-node.ts";
import { aWhile, healthChecked, runningAgent } from "./support/running-agent.ts";

const failed: NodeEvent = { type: "Warning", reason: "SyncFailed", message: "m".repeat(2_000) };

function events(answer: () => number, name = "", serviceUID?: NodeEventsParts["serviceUID"]) {
  const sent: unknown[] = [];
  const clock = new VirtualClock();
  const log = recordedLog();
  const namespaces: string[] = [];
  const post = async (namespace: string, event: unknown) => {
    sent.push(event);
    namespaces.push(namespace);
    return answer();
  };
  return {
    sent,
    namespaces,
    clock,
    log,
    events: new NodeEvents({ node: "node-a", component: componentOf(name), post, clock, log, serviceUID }),
  };
}

test("an Event about the Node, once in ten minutes for a reason", async () => {
  const one = events(() => 201);
  await one.events.report(failed);
  await one.events.report(failed);
  await one.events.report({ ...failed, reason: "Other" });
  expect(one.sent).toHaveLength(2);
  expect(one.sent[0]).toMatchObject({
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: "default" },
    involvedObject: { kind: "Node", name: "node-a", uid: "node-a" },
    reason: "SyncFailed",
    message: "m".repeat(1_024),
    firstTimestamp: "2030-01-01T00:00:00Z",
  });
  await one.clock.advance(600_000);
  await one.events.report(failed);
  expect(one.sent).toHaveLength(3);
  expect(one.log.lines).toEqual([]);
});

test("an agent with a name reports as a component of its own", async () => {
  const one = events(() => 201, "edge");
  await one.events.report(failed);
  expect(one.sent).toEqual([
    expect.objectContaining({
      source: { component: "fairlead-edge", host: "node-a" },
      reportingComponent: "fairlead-edge",
    }),
  ]);
});

test("Events refused in one namespace: one line for it, and those of the others are sent", async () => {
  let status = 403;
  const one = events(() => status);
  const about = (namespace: string, name: string): NodeEvent => ({ ...failed, service: { namespace, name } });
  await one.events.report(about("going", "a"));
  await one.events.report(about("going", "b"));
  expect(one.log.messages("info")).toEqual([expect.stringContaining("refused an Event")]);
  status = 201;
  await one.events.report(failed);
  await one.events.report(about("shop", "web"));
  expect(one.namespaces).toEqual(["going", "going", "default", "shop"]);
  expect(one.log.messages("info")).toHaveLength(1);
});

test("names differ within a millisecond, and after a refused one", async () => {
  const one = events(() => 201);
  for (let i = 0; i < 60; i++) await one.events.report({ ...failed, reason: `Reason${i}` });
  const names = one.sent.map((event) => textAt(objectAt(event, "metadata"), "name"));
  expect(new Set(names).size).toBe(60);
  for (const name of names) expect(name).toMatch(/^node-a\.[0-9a-f]{23}$/);
});

test("a server that does not answer is no failure", async () => {
  const one = events(() => {
    throw new Error("ECONNREFUSED");
  });
  await one.events.report(failed);
  expect(one.log.messages("verbose")).toHaveLength(1);
});

test("the third failure in a row is reported, a success begins anew", () => {
  const reported: string[] = [];
  const follower = eventFollower({ report: async ({ message }) => void reported.push(message) });
  const failure: FamilyOutcome = { kind: "failed", sync: "full", error: new Error("no"), milliseconds: 1, retryIn: 1 };
  const ran = (outcome: FamilyOutcome) => void follower.ran?.(runOf(outcome));
  for (const outcome of [failure, failure, SYNCED, failure, failure]) ran(outcome);
  expect(reported).toEqual([]);
  ran(failure);
  expect(reported).toEqual([
    "Failed to write the IPv4 rules 3 times in a row; previous rules stay in effect, retrying: no",
  ]);
});

test("objects that the kernel refused are an Event, though the sync succeeded", () => {
  const reported: string[] = [];
  const follower = eventFollower({
    report: async ({ reason, message }) => void reported.push(`${reason}: ${message}`),
  });
  const ran = (...refused: readonly string[]) => {
    const report = { kind: "full", objects: {}, ...(refused.length > 0 && { refused }) } as const;
    void follower.ran?.(runOf({ kind: "synced", report, milliseconds: 1 }));
  };
  ran();
  expect(reported).toEqual([]);
  ran("ipset: add A 1: Hash is full", "ipset: add A 2: Hash is full");
  expect(reported).toEqual([
    "ObjectsRefused: The kernel refused objects of IPv4; all others are in place, the next full sync tries them again: ipset: add A 1: Hash is full and 1 more, which the log names",
  ]);
});

const WEB = { clusterIPs: ["10.96.67.75"], ports: [{ port: 80 }] } as const;
const nodePortsOn = (value: string) =>
  service("web", {
    ...{ ...WEB, type: "NodePort", ports: [{ port: 80, nodePort: 30_080 }] },
    annotations: { "fairlead.dev/node-port-addresses": value },
  });

test.each<[what: string, reason: string, message: string, ...objects: readonly RawObject[]]>([
  [
    "node ports on what is no network",
    "InvalidAnnotation",
    "fairlead.dev/node-port-addresses must be CIDRs separated by commas, as 192.0.2.0/24,2001:db8::/64; " +
      'no node port of this Service is open; its value is "eth1"',
    nodePortsOn("eth1"),
  ],
  [
    "node ports on a network that the node is not in",
    "InvalidAnnotation",
    "fairlead.dev/node-port-addresses has none of the addresses on which this node serves node ports; " +
      'no IPv4 node port of this Service is open here; its value is "192.0.2.0/24"',
    nodePortsOn("192.0.2.0/24"),
  ],
  [
    "a weight that cannot be read, of an EndpointSlice",
    "InvalidAnnotation",
    "EndpointSlice web-1: fairlead.dev/weight must be a whole number from 0 to 1000000; " +
      'each endpoint of this slice weighs 1; its value is "most"',
    service("web", WEB),
    endpointSlice("web-1", {
      ...{ service: "web", family: "IPv4", ports: [{ port: 80 }], endpoints: [{ address: "10.144.1.5" }] },
      annotations: { "fairlead.dev/weight": "most" },
    }),
  ],
  [
    "valid input that does harm, with what is open first; of a note there is none",
    "TrafficOpen",
    "spec.loadBalancerSourceRanges has no IPv4 range: 203.0.113.42 is open to every client; " +
      'its value is ["2001:db8:5::/48"] (and 1 more: fairlead explain default/web)',
    service("web", {
      ...{ ...WEB, type: "LoadBalancer", ports: [{ port: 80, nodePort: 10_250 }] },
      ...{ sourceRanges: ["2001:db8:5::/48"], ingress: [{ ip: "203.0.113.42" }] },
    }),
    service("pending", { type: "LoadBalancer", clusterIPs: ["10.96.67.76"], ports: [{ port: 80 }] }),
  ],
])("one Event on the Service: %s", async (_what, reason, message, ...objects) => {
  const reported: NodeEvent[] = [];
  const one = await runningAgent({ events: { report: async (event) => void reported.push(event) } });
  await one.list(...objects);
  await one.source.put(...objects);
  await aWhile(one.clock);
  expect(reported).toEqual([{ type: "Warning", reason, message, service: { namespace: "default", name: "web" } }]);
});

describe("a Service's uid", () => {
  const asked: string[] = [];
  const uidFrom = (status: number, body: string) =>
    serviceUID(
      async ({ path }) => {
        asked.push(path);
        return { status, body };
      },
      "shop",
      "web",
    );

  test("is read from the list of that name, which the role of a proxy allows", async () => {
    expect(await uidFrom(200, JSON.stringify({ items: [{ metadata: { uid: "u-1" } }] }))).toBe("u-1");
    expect(asked).toEqual(["/api/v1/namespaces/shop/services?fieldSelector=metadata.name%3Dweb&resourceVersion=0"]);
  });

  test.each([
    ["a role that does not allow it", 403, "{}"],
    ["none of that name", 200, '{"items":[]}'],
    ["objects that are none", 200, '{"items":[1,{"metadata":{"uid":7}}]}'],
    ["no list", 200, "null"],
  ])("%s: unknown", async (_what, status, body) => {
    expect(await uidFrom(status, body)).toBeUndefined();
  });

  test("an answer that is no JSON is an error", async () => {
    await expect(uidFrom(200, "<html>")).rejects.toThrow();
  });
});

describe("ports that cannot be bound", () => {
  const inUse = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" });
  const check = (name: string): HealthCheck => {
    return { service: `shop/${name}`, namespace: "shop", name, port: 30_001, localEndpoints: 1 };
  };
  const about = (name: string) => healthCheckNotListening(check(name), { host: "fd00::1", port: 30_001 }, inUse);

  test("a Service's health-check port: an Event about the Service, in its namespace", async () => {
    const one = events(() => 201);
    await one.events.report(about("web"));
    await one.events.report(about("web"));
    expect(one.namespaces).toEqual(["shop"]);
    expect(one.sent).toMatchObject([
      {
        metadata: { namespace: "shop", name: expect.stringMatching(/^web\./) },
        involvedObject: { apiVersion: "v1", kind: "Service", namespace: "shop", name: "web" },
        type: "Warning",
        reason: "FailedToStartServiceHealthcheck",
        action: "Listen",
        message: "Cannot open the health-check node port on [fd00::1]:30001: listen EADDRINUSE",
        source: { component: "kube-proxy", host: "node-a" },
      },
    ]);
  });

  test.each([
    ["found", async (namespace: string, name: string) => `uid of ${namespace}/${name}`, "uid of shop/web"],
    ["gone", async () => undefined, undefined],
    ["not read", () => Promise.reject(new Error("ECONNRESET")), undefined],
  ])("a Service whose uid is %s", async (_what, serviceUID, uid) => {
    const one = events(() => 201, "", serviceUID);
    await one.events.report(about("web"));
    expect(one.sent).toHaveLength(1);
    expect(one.sent[0]).toHaveProperty("involvedObject", {
      apiVersion: "v1",
      kind: "Service",
      namespace: "shop",
      name: "web",
      ...(uid !== undefined && { uid }),
    });
  });

  test("a thousand Services with the same trouble: a few Events of their namespace, all others still go out", async () => {
    const one = events(() => 201);
    const of = (namespace: string, name: string): NodeEvent => ({ ...about(name), service: { namespace, name } });
    for (let i = 0; i < 1_000; i++) await one.events.report(about(`web-${i}`));
    expect(one.sent).toHaveLength(10);
    await one.events.report(failed);
    await one.events.report(of("other", "web"));
    expect(one.sent).toHaveLength(12);
    await one.clock.advance(600_000);
    await one.events.report(about("web-999"));
    expect(one.sent).toHaveLength(13);
  });

  test("the last Event that a namespace has room for says so, within what the API server takes", async () => {
    const one = events(() => 201);
    const of = (name: string): NodeEvent => ({ ...failed, service: { namespace: "shop", name } });
    for (let number = 0; number < 12; number++) await one.events.report(of(`web-${number}`));
    const messages = one.sent.map((event) => String(textAt(event, "message")));
    expect(messages.map((text) => text.endsWith("see `fairlead doctor`"))).toEqual([...Array(9).fill(false), true]);
    expect(messages.at(-1)).toHaveLength(1_024);
    expect(messages.at(-1)).toMatch(/^m+\. There may be more Services like it/);
  });

  test("beyond a hundred each namespace has one", async () => {
    const one = events(() => 201);
    const of = (namespace: string, name: string): NodeEvent => ({ ...about(name), service: { namespace, name } });
    for (let i = 0; i < 200; i++) await one.events.report({ ...failed, reason: `OfTheNode${i}` });
    for (let ns = 0; ns < 10; ns++) for (let i = 0; i < 25; i++) await one.events.report(of(`spam-${ns}`, `web-${i}`));
    expect(one.sent).toHaveLength(300);
    for (let i = 0; i < 5; i++) await one.events.report(of("shop", `web-${i}`));
    expect(one.sent).toHaveLength(301);
  });

  test("the health and the metrics port: kube-proxy's reasons", () => {
    expect(serverNotListening("health", "in use")).toMatchObject({ reason: "FailedToStartProxierHealthcheck" });
    expect(serverNotListening("metrics", "in use")).toMatchObject({ reason: "FailedToStartMetricServer" });
  });

  test("an agent reports a Service's port that is in use, and its own", async ({ signal }) => {
    const other = await listen(routes({}), { host: "0.0.0.0", port: 0 });
    const { port } = other.address;
    const reported: NodeEvent[] = [];
    const report = async (event: NodeEvent) => void reported.push(event);
    const one = await runningAgent({ events: { report }, metricsPort: port });
    await one.list(healthChecked(port));
    await until(signal, () => reported.length === 2);
    const events = Object.fromEntries(reported.map(({ reason, service: about }) => [reason, about]));
    expect(events).toEqual({
      FailedToStartMetricServer: undefined,
      FailedToStartServiceHealthcheck: { namespace: "default", name: "web" },
    });
    await one.stop();
    await other.close();
  });

  test("with --bind-address-hard-fail its own ends it, and it reports that before", async ({ signal }) => {
    const other = await listen(routes({}), { host: "0.0.0.0", port: 0 });
    const reported: string[] = [];
    const report = async ({ reason }: NodeEvent) => void reported.push(reason);
    const flags = ["--bind-address-hard-fail"];
    const one = await runningAgent({ events: { report }, metricsPort: other.address.port, flags });
    await until(signal, () => reported.length === 1);
    await one.clock.advance(3_000);
    expect(await one.ended).toMatch(/the metrics server cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/);
    expect(reported).toEqual(["FailedToStartMetricServer"]);
    await other.close();
  });
});

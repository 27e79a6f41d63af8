import type { OwnershipDecision, ServiceKey } from "@fairlead/core";
import { endpointSlice, userDefinedNetwork as udn } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { LiveCluster, type ServiceRow, UnusableObjects } from "../src/index.ts";
import { OwnerHistory, type Owners } from "../src/model/cluster.ts";
import { LiveObjects, shop } from "./support/objects.ts";
import { setupOf } from "./support/page.ts";

const LEARNING = ["--cluster-cidr=10.144.0.0/16", "--exclude-cidrs-from=kube-ovn-subnets"];
const emptied = endpointSlice("web-1", { namespace: "shop", service: "web", family: "IPv4", ports: [], endpoints: [] });

async function followed(flags?: string[]) {
  const objects = new LiveObjects(shop);
  const published: (readonly ServiceRow[])[] = [];
  const setup = setupOf(flags);
  const cluster = new LiveCluster({
    setup,
    nodeName: "node-a",
    now: () => 0,
    unusable: new UnusableObjects(),
    onServices: (rows) => published.push(rows),
    onNode: () => {},
  });
  const stop = new AbortController();
  const ended = cluster.follow(objects, stop.signal);
  await cluster.ready;
  return {
    objects,
    cluster,
    published,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await ended;
    },
  };
}

test("what the first plan and the first decision have is not published again", async () => {
  await using live = await followed(LEARNING);
  await live.objects.put(emptied);
  await expect.poll(() => live.published.length).toBeGreaterThan(0);
  expect(live.published[0]?.map(({ service }) => service)).toEqual(["shop/web"]);
});

test("where a node's agent is set up differently than known, owners are published anew", async () => {
  await using live = await followed();
  const owners = () => live.published.flat().map(({ service, owners: { IPv4 } }) => `${service} ${IPv4}`);
  live.cluster.setSetup("node-a", setupOf(["--cluster-cidr=10.144.0.0/16"]));
  await expect.poll(owners).toContain("default/nginx-ovn ours");
  const count = live.published.length;
  live.cluster.setSetup("node-a", setupOf(["--cluster-cidr=10.144.0.0/16"]));
  await live.objects.put(emptied);
  await expect.poll(() => live.published.length).toBe(count + 1);
  expect(live.published.at(-1)?.map(({ service }) => service)).toEqual(["shop/web"]);
});

test("a change on a node of kube-proxy is planned without annotations of Fairlead, as the first plan is", async () => {
  await using live = await followed();
  live.cluster.setSetup("node-a", { ...setupOf(), asKubeProxy: true });
  const [web] = shop.filter(({ kind, metadata }) => kind === "Service" && metadata.name === "web");
  if (web === undefined) throw new Error("the shop has no Service web");
  const annotations = { "fairlead.dev/ownership": "foreign" };
  await expect.poll(() => live.published.length).toBeGreaterThan(0);
  const before = live.published.length;
  await live.objects.put({ ...web, metadata: { ...web.metadata, annotations } });
  await expect.poll(() => live.published.length).toBeGreaterThan(before);
  const owner = await live.cluster.withPlan("node-a", ({ planner }) => planner.ownership("shop/web", "IPv4"));
  expect(owner?.ownership).toBe("ours");
});

test("endpoints of a Service in a user-defined network are those there, as soon as they are mirrored", async () => {
  await using live = await followed();
  for (const object of [udn.service, udn.slice]) await live.objects.put(object);
  const rows = () => live.published.flat().filter(({ service }) => service === "nad-l3/sample-deployment");
  const ready = () => rows().map(({ endpoints, ready }) => `${ready}/${endpoints}`);
  await expect.poll(() => ready().at(-1)).toBe("1/1");
  const two = { addresses: ["10.128.1.4"], conditions: { ready: false } };
  await live.objects.put({ ...udn.mirrored, endpoints: [...(udn.mirrored["endpoints"] as unknown[]), two] });
  await expect.poll(() => ready().at(-1)).toBe("1/2");
  await live.objects.remove(udn.mirrored);
  await expect.poll(() => ready().at(-1)).toBe("1/1");
});

test("while a plan is in use, the next request for it waits, and no change of an object is planned", async () => {
  await using live = await followed();
  const held = Promise.withResolvers<string>();
  const settled: string[] = [];
  const first = live.cluster.withPlan("node-a", () => held.promise).then((one) => settled.push(one));
  const second = live.cluster.withPlan("node-a", () => "second").then((one) => settled.push(one));
  await live.objects.put(emptied);
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect([settled, live.published]).toEqual([[], []]);
  held.resolve("first");
  await Promise.all([first, second]);
  expect(settled).toEqual(["first", "second"]);
  await expect.poll(() => live.published.length).toBe(1);
});

const owned = (ownership: OwnershipDecision["ownership"]): OwnershipDecision => ({
  ownership,
  why: `because it is ${ownership}`,
  decidingCIDRs: [],
  decided: true,
  ownEndpoints: 1,
  excludedEndpoints: 0,
  frontends: "all",
});
const only = (service: ServiceKey, decision: OwnershipDecision | undefined) =>
  new Map<ServiceKey, Owners>([[service, decision === undefined ? {} : { IPv4: decision }]]);

test("what comes, changes and goes is kept with time and reason; what stays is not", () => {
  const history = new OwnerHistory();
  history.take(only("shop/web", undefined), only("shop/web", owned("ours")), 1);
  history.take(only("shop/web", owned("ours")), only("shop/web", owned("ours")), 2);
  history.take(only("shop/web", owned("ours")), only("shop/web", owned("foreign")), 3);
  history.take(only("shop/web", owned("foreign")), only("shop/web", undefined), 4);
  expect(history.of("shop/web")).toEqual([
    { at: 1, family: "IPv4", after: "ours", why: "because it is ours" },
    { at: 3, family: "IPv4", before: "ours", after: "foreign", why: "because it is foreign" },
    { at: 4, family: "IPv4", before: "foreign" },
  ]);
  expect(history.of("shop/other")).toEqual([]);
});

test("however long it runs, it keeps the latest only", () => {
  const history = new OwnerHistory();
  for (let at = 0; at < 3_000; at++) {
    history.take(only("a/busy", owned("ours")), only("a/busy", owned(at % 2 === 0 ? "mixed" : "foreign")), at);
    history.take(only(`a/s-${at}`, undefined), only(`a/s-${at}`, owned("ours")), at);
  }
  expect(history.of("a/busy").map(({ at }) => at)).toEqual(Array.from({ length: 20 }, (_, i) => 2_980 + i));
  expect(history.of("a/s-0")).toEqual([]);
  expect(history.of("a/s-2999")).toHaveLength(1);
});

import { endpointSlice, userDefinedNetwork as udn } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { LiveCluster, type ServiceRow, UnusableObjects } from "../src/index.ts";
import { LiveObjects } from "./support/live-objects.ts";
import { shop } from "./support/objects.ts";
import { setupOf } from "./support/start.ts";

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

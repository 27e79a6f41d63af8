import { endpointSlice, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { UnusableObjects } from "../src/index.ts";
import { Events, LiveObjects, manyServices, shop } from "./support/objects.ts";
import { addressOf, cookieOf, openConsole } from "./support/page.ts";

const isWhole = ({ name }: { readonly name: string }) => name === "whole";
const isServices = ({ name }: { readonly name: string }) => name === "services";
const emptied = endpointSlice("web-1", { namespace: "shop", service: "web", family: "IPv4", ports: [], endpoints: [] });
const [, , web] = shop;

async function opened(objects = shop) {
  const source = new LiveObjects(objects);
  const running = await openConsole(source, "");
  const { base } = addressOf(running.url);
  const cookie = await cookieOf(running.url);
  return { source, running, open: (headers = {}) => Events.open(base, { cookie, ...headers }) };
}

test("a new client is given everything, then each change with its number", async () => {
  const { source, running, open } = await opened();
  await using _running = running;
  await using events = await open();
  const all = await events.until(isWhole);
  expect(all.map(({ name }) => name)).toEqual(["begin", "services", "whole"]);
  expect(all[0]?.data).toMatchObject({ facts: { node: "node-a", mode: "iptables" }, services: 5 });
  expect(all[1]?.data["rows"]).toContainEqual({
    service: "shop/web",
    owners: { IPv4: "ours" },
    frontends: ["10.96.0.10:80", "203.0.113.9:80", "node port 30080"],
    endpoints: 4,
    ready: 2,
    local: 1,
    draining: 1,
  });
  const { id = -1 } = all[2] ?? {};

  await source.put(emptied);
  const [change] = await events.until(isServices);
  expect(change).toMatchObject({ id: id + 1, data: { rows: [{ service: "shop/web", ready: 0 }], gone: [] } });
});

const isUnusable = ({ name }: { readonly name: string }) => name === "unusable";

test("an object that cannot be read is reported with its field and why, until it is good or gone", async () => {
  const bad = service("bad", { clusterIPs: ["10.96.0.300"], ports: [{ port: 80 }] });
  const { source, running, open } = await opened([...shop, bad]);
  await using _running = running;
  await using events = await open();
  const [begin] = await events.until(isWhole);
  expect(begin?.data["unusable"]).toMatchObject({
    objects: 1,
    rows: [{ object: "Service default/bad", field: "spec.clusterIPs[0]", value: '"10.96.0.300"' }],
  });
  await source.put(service("bad", { clusterIPs: ["10.96.0.30"], ports: [{ port: 80 }] }));
  expect((await events.until(isUnusable)).at(-1)?.data).toEqual({ objects: 0, rows: [] });
  await source.put(bad);
  expect((await events.until(isUnusable)).at(-1)?.data).toMatchObject({ objects: 1 });
  await source.remove(bad);
  expect((await events.until(isUnusable)).at(-1)?.data).toEqual({ objects: 0, rows: [] });
});

test("what the source itself cannot read stands there too; of very many only the first", async () => {
  const unusable = new UnusableObjects(() => 7);
  for (let at = 0; at < 200; at += 1)
    unusable.report({ resource: "services", key: `shop/${at}`, error: "not an object", file: "shop.yaml" });
  await using running = await openConsole(new LiveObjects(shop), "", { unusable });
  await using events = await Events.open(addressOf(running.url).base, { cookie: await cookieOf(running.url) });
  const [begin] = await events.until(isWhole);
  const row = { object: "Service shop/0", at: 7, field: "", value: "", why: "not an object", file: "shop.yaml" };
  const rest = Array.from({ length: 99 }, (_, at) => ({ ...row, object: `Service shop/${at + 1}` }));
  expect(begin?.data["unusable"]).toEqual({ objects: 200, rows: [row, ...rest] });
});

test("a client that comes back is given what it missed, and nothing else", async () => {
  const { source, running, open } = await opened();
  await using _running = running;
  let last = -1;
  {
    await using events = await open();
    last = (await events.until(isWhole)).at(-1)?.id ?? -1;
    await source.put(emptied);
    await events.until(isServices);
  }
  await using witness = await open();
  await witness.until(isWhole);
  if (web !== undefined) await source.remove(web);
  await witness.until(isServices);
  await using again = await open({ "last-event-id": String(last) });
  const seen = await again.until(({ data }) => Array.isArray(data["gone"]) && data["gone"].length > 0);
  expect(seen.map(({ name, id }) => [name, id])).toEqual([
    ["whole", last + 2],
    ["services", last + 1],
    ["services", last + 2],
  ]);
  expect(seen.at(-1)?.data).toMatchObject({ rows: [], gone: ["shop/web"] });
});

test.each(["99999", "-5", "odd"])("with the number %s it begins anew", async (last) => {
  const { running, open } = await opened();
  await using _running = running;
  await using events = await open({ "last-event-id": last });
  expect((await events.until(isWhole))[0]?.name).toBe("begin");
});

test("thousands of services come in portions", async () => {
  const { running, open } = await opened(manyServices(2_000));
  await using _running = running;
  await using events = await open();
  const all = await events.until(isWhole);
  const portions = all.filter(isServices).map(({ data }) => data["rows"]);
  expect(portions.map((rows) => (Array.isArray(rows) ? rows.length : 0))).toEqual([500, 500, 500, 500]);
});

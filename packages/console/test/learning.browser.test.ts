import type { RawObject } from "@fairlead/testkit";
import { openBrowser } from "@fairlead/tooling/browser";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Events, type SentEvent } from "./support/events.ts";
import { LiveObjects, shop } from "./support/objects.ts";
import { builtPage, visitPage } from "./support/page.ts";
import { addressOf, cookieOf, openConsole, setupOf, visit } from "./support/start.ts";

const setup = () => setupOf(["--cluster-cidr=10.144.0.0/16", "--exclude-cidrs-from=kube-ovn-subnets"]);

const subnet = (name: string, cidrBlock: string): RawObject => ({
  apiVersion: "kubeovn.io/v1",
  kind: "Subnet",
  metadata: { name },
  spec: { cidrBlock },
});
/** Decisions that change no owner are told, too. */
const hasRows = ({ data: { rows } }: SentEvent) => Array.isArray(rows) && rows.length > 0;
const OVN = subnet("ovn-default", "10.244.0.0/16");

describe("what networks' objects say is followed", () => {
  test("services change hands with a Subnet, and only those that it is about are told", async () => {
    const objects = new LiveObjects(shop);
    await using running = await openConsole(objects, "", { setup: setup() });
    const { base } = addressOf(running.url);
    const cookie = await cookieOf(running.url);
    await using events = await Events.open(base, { cookie });
    const all = await events.until(({ name }) => name === "whole");
    const rows = all.flatMap(({ data }) => (Array.isArray(data["rows"]) ? data["rows"] : []));
    expect(rows.find(({ service }) => service === "default/nginx-ovn").owners).toEqual({ IPv4: "ours" });

    await objects.put(OVN);
    const told = (await events.until(hasRows)).at(-1);
    expect(told?.data["rows"]).toMatchObject([
      { service: "default/nginx-ovn", owners: { IPv4: "foreign" } },
      { service: "default/both", owners: { IPv4: "mixed" } },
    ]);
    const ask = async (path: string) => JSON.parse((await visit(`${base}api/${path}`, { headers: { cookie } })).text);
    const { services, learned } = await ask("networks");
    expect(services.find(({ service }: { service: string }) => service === "default/nginx-ovn")).toMatchObject({
      ownership: "foreign",
      learnedFrom: [{ cidr: "10.244.0.0/16", objects: ["Subnet/ovn-default"], since: expect.any(String) }],
    });
    expect(learned.cidrs).toMatchObject([{ cidr: "10.244.0.0/16", stage: "effective" }]);
    const what = await visit(`${base}api/service?target=shop/web`, { headers: { cookie } });
    expect(JSON.parse(what.text)).toMatchObject({ learnedFrom: [], owners: { changes: [] } });
  });

  test("another node is planned by what is known by then, and an endpoint that comes later too", async () => {
    const objects = new LiveObjects([...shop, OVN]);
    await using running = await openConsole(objects, "", { setup: setup() });
    const { base } = addressOf(running.url);
    const cookie = await cookieOf(running.url);
    const ask = async (path: string) => JSON.parse((await visit(`${base}api/${path}`, { headers: { cookie } })).text);
    const owner = async (service: string) =>
      (await ask(`service?target=${service}&node=node-b`)).explanation.families[0].ownership.ownership;
    expect([await owner("default/nginx-ovn"), await owner("default/stray")]).toEqual(["foreign", "ours"]);
    await using events = await Events.open(base, { cookie });
    await events.until(({ name }) => name === "whole");
    await objects.put(subnet("stray", "10.88.0.0/16"));
    await events.until(hasRows);
    expect(await owner("default/stray")).toBe("foreign");
  });
});

describe("on the page", () => {
  const opened = new AsyncDisposableStack();
  let html = "";
  let browser: Browser;
  beforeAll(async () => {
    html = await builtPage();
    browser = opened.use(await openBrowser());
  });
  afterAll(() => opened.disposeAsync());

  test("a Subnet turns a service's owner without a reload, with its name and since when", async () => {
    const objects = new LiveObjects(shop);
    await using running = await openConsole(objects, html, { setup: setup() });
    const { page, go, complaints } = await visitPage(browser, running.url);
    await go("#/service/default/nginx-ovn", "default/nginx-ovn");
    const family = page.getByRole("region", { name: "IPv4" });
    await family.getByRole("heading", { name: /IPv4 .*ours/ }).waitFor();
    await page.evaluate("globalThis.same = true");
    await objects.put(OVN);
    await family.getByRole("heading", { name: /IPv4 .*another network's/ }).waitFor();
    await family.getByText(/10\.244\.0\.0\/16 is learned from Subnet\/ovn-default, since \d/).waitFor();
    const before = page.getByRole("region", { name: "Owners before" }).getByRole("row").nth(1);
    expect(await before.textContent()).toMatch(/IPv4.*ours.*another network's.*10\.244\.0\.0\/16/);
    await go("#/networks", "Networks");
    const said = page.getByRole("region", { name: "What the objects say" });
    expect(await said.getByRole("row", { name: "10.244.0.0/16" }).textContent()).toMatch(/counts.*Subnet\/ovn-default/);
    await objects.put(subnet("<b>stray</b>", "10.88.0.0/16"));
    await said.getByRole("row", { name: "10.88.0.0/16" }).getByText("Subnet/<b>stray</b>").waitFor();
    expect(await page.evaluate("globalThis.same")).toBe(true);
    expect(complaints).toEqual([]);
  });
});

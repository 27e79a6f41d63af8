import { endpointSlice, type RawObject } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { calmNodes, cannedAnswers, HOSTILE } from "./support/answers.ts";
import { inBrowser } from "./support/browser.ts";
import { Events, LiveObjects, type SentEvent, shop } from "./support/objects.ts";
import { addressOf, cookieOf, openConsole, setHidden, setupOf, visit } from "./support/page.ts";

const on = inBrowser();

const nodes = { answers: () => cannedAnswers, looking: calmNodes };

describe("flows", () => {
  test("by service and endpoint, those that hang marked and first, and one service's only", async () => {
    const { page, go } = await on.visit("#/flows", "Flows", { ...nodes });
    const sums = page.getByRole("region", { name: "By service and endpoint" });
    expect(await sums.getByRole("row", { name: "shop/web" }).textContent()).toMatch(/tcp port http\s*4117\.2KB7\.7MB$/);
    expect(await sums.getByRole("row", { name: "10.144.2.8:8080" }).textContent()).toContain("terminating");
    const rows = page.getByRole("region", { name: "Connections" }).getByRole("row");
    expect(await rows.nth(1).textContent()).toMatch(/10\.144\.1\.9:40004.*gone: hangs.*unanswered/);
    await go("#/flows?service=default/both", "Flows");
    await page.getByText("Only default/both").waitFor();
    await page.getByText("40001").waitFor({ state: "detached" });
    expect(await rows.count()).toBe(2);
  });

  test("curves grow with each look, in words and as a table as well, on both pages", async () => {
    const { page, go, complaints } = await on.visit("#/overview", "Overview", { ...nodes });
    const grows = async () => {
      const curves = page.getByRole("region", { name: "Over time" });
      await curves.getByText(/^New connections a second: \d/).waitFor();
      await curves.getByText("as a table").click();
      const rows = curves.locator("tbody tr");
      const drawn = () => page.evaluate("document.querySelector('.curves canvas').toDataURL()");
      await rows.nth(1).waitFor();
      const [before, count] = [await drawn(), await rows.count()];
      await rows.nth(count).waitFor();
      expect(await drawn()).not.toBe(before);
      expect(await curves.getByRole("figure").nth(1).textContent()).toMatch(/both ways: 200KB.*now, 200KB to 200KB in/);
    };
    await go("#/flows", "Flows");
    await grows();
    await page.getByText("as a table").click();
    await go("#/service/shop/web", "shop/web");
    await page.getByRole("button", { name: "Count connections on node-a" }).click();
    await grows();
    expect(complaints).toEqual([]);
  });

  test("no node is asked once it is stopped, left, out of view, or open for ten minutes", async () => {
    let asked = 0;
    const counting = async (query: URLSearchParams) => {
      asked += 1;
      return cannedAnswers.gets["/api/flows"]?.(query, undefined);
    };
    const answers = () => ({ ...cannedAnswers, gets: { ...cannedAnswers.gets, "/api/flows": counting } });
    const { page, go } = await on.visit("#/overview", "Overview", { ...nodes, answers });
    await page.clock.install();
    await go("#/flows", "Flows");
    await page.getByRole("heading", { name: "Connections" }).waitFor();
    const quiet = async () => {
      const before = asked;
      await page.clock.runFor(20_000);
      expect(asked).toBe(before);
    };
    await setHidden(page, true);
    // What was on its way then has come.
    await page.clock.runFor(2_000);
    await quiet();
    const hidden = asked;
    await setHidden(page, false);
    await expect.poll(() => asked).toBeGreaterThan(hidden);
    await page.getByRole("button", { name: "Stop" }).click();
    await quiet();
    const stopped = asked;
    await page.getByRole("button", { name: "Go on" }).click();
    // The ten minutes begin with the first question, which comes some time after the button has changed.
    await expect.poll(() => asked).toBeGreaterThan(stopped);
    await page.clock.fastForward(10 * 60_000);
    await page.getByText("stopped").waitFor();
    await quiet();
    const ended = asked;
    await page.getByRole("button", { name: "Go on" }).click();
    await expect.poll(() => asked).toBeGreaterThan(ended);
    await go("#/overview", "Overview");
    await quiet();
  });

  test("of a service, by its endpoints, on request", async () => {
    const { page } = await on.visit("#/service/shop/web", "shop/web", { ...nodes });
    await page.getByRole("button", { name: "Count connections on node-a" }).press("Enter");
    const panel = page.getByRole("region", { name: "Connections" });
    expect(await panel.getByRole("row", { name: "10.144.1.5:8080" }).textContent()).toMatch(/node-a2–8\.6KB3\.8MB$/);
    expect(await panel.getByText("default/both").count()).toBe(0);
  });
});

test("doctor: what is bad comes first with what to do, node by node, what is good stays closed", async () => {
  const { page } = await on.visit("#/doctor", "Doctor", { ...nodes });
  const node = (name: string) => page.getByRole("region", { name });
  await node("node-b").getByText("nothing is bad").waitFor();
  expect(await node("node-a").getByRole("row").nth(1).textContent()).toMatch(/ip_forward.*bad.*0→ sysctl -w/);
  expect(await node("node-a").getByText("connection tracking").isVisible()).toBe(false);
  await page.getByRole("combobox", { name: "Node" }).selectOption("node-b");
  await node("node-a").waitFor({ state: "detached" });
  await page.getByRole("combobox", { name: "Node" }).selectOption("all");
  await node("node-a").getByText("1 check is good").click();
  expect(await node("node-a").getByText("connection tracking").isVisible()).toBe(true);
});

test("networks: what the agent has learned, from which object and since when, and what contradicts", async () => {
  const { page } = await on.visit("#/networks", "Networks", { ...nodes });
  const panel = page.getByRole("region", { name: "Learned from objects" });
  await panel.getByText("agent of node-a").waitFor();
  const row = (name: string) => panel.getByRole("row", { name });
  expect(await row("10.244.0.0/16").textContent()).toMatch(/another network's✓counts Subnet\/ovn-default.*2026/);
  expect(await row("10.96.0.0/12").textContent()).toMatch(/✕refused services have it/);
  expect(await row("10.144.9.0/24").textContent()).toContain(HOSTILE);
  expect(await panel.getByRole("listitem").textContent()).toBe(
    "10.144.9.0/24, another network's, lies in 10.144.0.0/16, ours",
  );
  expect(await row("10.144.2.0/24").textContent()).toMatch(/▲held back lies in ours.*What would change/);
  expect(await panel.getByText("calico-ippools: forbidden").isVisible()).toBe(true);
  expect(await page.evaluate("globalThis.hacked")).toBeUndefined();
  await panel.getByLabel("Learned by the agent of").selectOption("node-b");
  await panel.getByText("agent of node-b").waitFor();
});

test("owners before: what changed since the console was started, and why", async () => {
  const objects = new LiveObjects(shop);
  const { page } = await on.visit("#/service/default/no-endpoint", "default/no-endpoint", { source: objects });
  await page.getByText("Nothing has changed since this console was started").waitFor();
  const endpoints = [{ address: "10.244.0.77", nodeName: "node-b" }];
  await objects.put(
    endpointSlice("no-endpoint-1", { service: "no-endpoint", family: "IPv4", ports: [{ port: 80 }], endpoints }),
  );
  const row = page.getByRole("region", { name: "Owners before" }).getByRole("row").nth(1);
  await row.waitFor();
  expect(await row.textContent()).toMatch(/IPv4.*ours.*another network's/);
});

const setup = () => setupOf(["--cluster-cidr=10.144.0.0/16", "--exclude-cidrs-from=kube-ovn-subnets"]);

const subnet = (name: string, cidrBlock: string): RawObject => ({
  apiVersion: "kubeovn.io/v1",
  kind: "Subnet",
  metadata: { name },
  spec: { cidrBlock },
});
/** The stream also has decisions that change no owner. */
const hasRows = ({ data: { rows } }: SentEvent) => Array.isArray(rows) && rows.length > 0;
const OVN = subnet("ovn-default", "10.244.0.0/16");

describe("what networks' objects say is followed", () => {
  test("services change hands with a Subnet, and only those that it is about are sent", async () => {
    const objects = new LiveObjects(shop);
    await using running = await openConsole(objects, "", { setup: setup() });
    const { base } = addressOf(running.url);
    const cookie = await cookieOf(running.url);
    await using events = await Events.open(base, { cookie });
    const all = await events.until(({ name }) => name === "whole");
    const rows = all.flatMap(({ data }) => (Array.isArray(data["rows"]) ? data["rows"] : []));
    expect(rows.find(({ service }) => service === "default/nginx-ovn").owners).toEqual({ IPv4: "ours" });

    await objects.put(OVN);
    const sent = (await events.until(hasRows)).at(-1);
    expect(sent?.data["rows"]).toMatchObject([
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
  test("a Subnet turns a service's owner without a reload, with its name and since when", async () => {
    const objects = new LiveObjects(shop);
    const { page, go, complaints } = await on.visit("#/service/default/nginx-ovn", "default/nginx-ovn", {
      source: objects,
      setup: setup(),
    });
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

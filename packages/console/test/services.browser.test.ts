import { endpointSlice, service } from "@fairlead/testkit";
import type { ObjectSource, SourceReport } from "@fairlead/watch";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type ConsoleOptions, SourceHealth } from "../src/index.ts";
import { calmNodes } from "./support/answers.ts";
import { inBrowser } from "./support/browser.ts";
import { LiveObjects, manyServices, shop } from "./support/objects.ts";
import { fastPathSetup, openConsole, visitPage } from "./support/page.ts";

const on = inBrowser();

const names = (page: Page) => page.locator(".list .name").allTextContents();

const choice = (page: Page, name: string) => page.getByRole("combobox", { name, exact: true });
const standing = (page: Page) => expect.poll(() => page.locator("header .badge").textContent());

describe("the list of services", () => {
  test("is filtered and sorted, and its address is a link to that", async () => {
    const { page, go } = await on.visit("#/services", "Services");
    await choice(page, "Namespace").selectOption("default");
    await page.getByText("4 of 5").waitFor();
    await choice(page, "State").selectOption("no ready endpoint");
    await page.getByText("1 of 5").waitFor();
    expect(await names(page)).toEqual(["default/no-endpoint"]);
    expect(page.url()).toMatch(/#\/services\?namespace=default&state=unready$/);

    await go("#/services?namespace=default&sort=-ready", "Services");
    expect(await names(page)).toEqual(["default/both", "default/nginx-ovn", "default/stray", "default/no-endpoint"]);
    const head = page.getByRole("columnheader", { name: "Ready" });
    expect(await head.getAttribute("aria-sort")).toBe("descending");
    await head.getByRole("button").press("Enter");
    await page.locator("th[aria-sort=ascending]").waitFor();
    expect((await names(page))[0]).toBe("default/no-endpoint");
    expect(await choice(page, "Sorted by").inputValue()).toBe("ready");
    await page.reload();
    await page.getByRole("link", { name: "default/no-endpoint" }).waitFor();
    expect((await names(page))[0]).toBe("default/no-endpoint");
  });

  test("is readable on a phone as well, when most of it is not in the document", async () => {
    const { page } = await on.visit("#/services", "Services", {
      source: new LiveObjects(manyServices(100)),
      width: 390,
    });
    await page.locator(".list .space").waitFor({ state: "attached" });
    const widths = await page
      .locator(".list thead th")
      .evaluateAll((heads) => heads.map((head) => head.getBoundingClientRect().width));
    expect(widths).toHaveLength(3);
    expect(Math.min(...widths)).toBeGreaterThan(80);
    expect(widths[0]).toBeGreaterThan(150);
    const { box, table } = await page.locator(".list").evaluate((list) => {
      return { box: list.clientWidth, table: list.querySelector("thead tr")?.getBoundingClientRect().width ?? 0 };
    });
    expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(table, 0);
    expect(table).toBeCloseTo(box, 0);
  });

  test("cuts no number, nor an age", async () => {
    const old = shop.map((object) => {
      const creationTimestamp = new Date(Date.now() - 110 * 60_000).toISOString();
      return { ...object, metadata: { ...object.metadata, creationTimestamp } };
    });
    const { page } = await on.visit("#/services", "Services", { source: new LiveObjects(old) });
    const ages = page.getByText(/^11\d min$/);
    await ages.first().waitFor();
    const cut = page.locator(".list .number").evaluateAll((cells) => {
      return cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent);
    });
    expect(await cut).toEqual([]);
  });

  test("says why it is empty", async () => {
    const { page } = await on.visit("#/services?namespace=shop&owner=foreign", "Services");
    await page.getByText("There is no service in namespace shop, that is another network's.").waitFor();
    await page.getByRole("link", { name: "All services" }).click();
    await page.getByRole("link", { name: "shop/web" }).waitFor();
  });

  test("each number of the overview leads to its services", async () => {
    const { page, go } = await on.visit("#/overview", "Overview", { looking: calmNodes });
    for (const [tile, services] of [
      [/^1 ?no ready endpoint/, ["default/no-endpoint"]],
      [/^1 ?draining/, ["shop/web"]],
      [/^1 ?mixed/, ["default/both"]],
    ] as const) {
      await go("#/overview", "Overview");
      await page.getByRole("link", { name: tile }).click();
      await page.getByText(`${services.length} of 5`).waitFor();
      expect(await names(page)).toEqual(services);
    }
  });

  test("where most of them differ the overview names the likely cause, and shows a few", async () => {
    const services = manyServices(30).flatMap(({ kind, metadata }) =>
      kind === "Service" ? [{ service: `many/${metadata.name}`, kind: "missing" as const, findings: [] }] : [],
    );
    const looking: ConsoleOptions["looking"] = () => ({
      reaches: () => true,
      kernel: async () => [{ family: "IPv4", services }],
      agent: async () => ({ mode: "nftables", healthy: true }),
    });
    const { page } = await on.visit("#/overview", "Overview", { source: new LiveObjects(manyServices(30)), looking });
    const panel = page.getByRole("region", { name: "What differs" });
    await panel.getByText("This looks like another configuration").waitFor();
    expect(await panel.getByRole("heading", { level: 3 }).count()).toBe(10);
    await panel.getByRole("link", { name: "20 more services" }).click();
    // The overview that is left has the number in its tiles.
    await page.getByRole("heading", { level: 1, name: "Services" }).waitFor();
    await page.getByText("30", { exact: true }).waitFor();
    expect(page.url()).toContain("#/services?state=differs");
  });

  test("/ leads to the search box from any page, and stays a letter in a text", async () => {
    const { page } = await on.visit("#/what-if", "What if");
    await page.getByLabel("A CIDR").press("/");
    expect(await page.getByLabel("A CIDR").inputValue()).toBe("/");
    await page.getByRole("heading", { name: "What if" }).click();
    await page.keyboard.press("/");
    await page.getByRole("heading", { level: 1, name: "Services" }).waitFor();
    await page.keyboard.type("10.144.2.7");
    await page.getByText("1 of 5").waitFor();
  });
});

test("a service's port says whether its connections are on the fast path, where that is configured", async () => {
  const excepted = service("excepted", {
    annotations: { "fairlead.dev/fast-path": "off" },
    clusterIPs: ["10.96.0.15"],
    ports: [{ port: 80 }],
  });
  const endpoints = endpointSlice("excepted-1", {
    service: "excepted",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.144.1.8", nodeName: "node-a" }],
  });
  const objects = [...shop, excepted, endpoints];
  const { page, go } = await on.visit("#/overview", "Overview", {
    source: new LiveObjects(objects),
    setup: fastPathSetup(),
  });
  const panel = page.getByRole("region", { name: "IPv4" });
  const line = panel.getByText(/^Fast path: /);
  await go("#/service/shop/web", "shop/web");
  await panel.waitFor();
  expect(await line.allTextContents()).toEqual(["Fast path: established connections"]);
  await go("#/service/default/excepted", "default/excepted");
  await panel.waitFor();
  expect(await line.allTextContents()).toEqual(["Fast path: no, the Service's annotation fairlead.dev/fast-path"]);
  await using without = await openConsole(new LiveObjects(shop), on.html);
  const other = await visitPage(on.browser, without.url);
  await other.go("#/service/shop/web", "shop/web");
  await other.page.getByRole("region", { name: "IPv4" }).waitFor();
  expect(await other.page.getByText(/^Fast path: /).count()).toBe(0);
});

const failing: SourceReport = {
  type: "failing",
  problem: "unreachable",
  server: "https://10.0.0.1:6443",
  address: "10.0.0.1",
  milliseconds: 0,
  error: "connect ECONNREFUSED",
  resources: ["services"],
};

describe("what is shown is live", () => {
  test("only where the API server answers; what was known stays", async () => {
    const health = new SourceHealth();
    const { page } = await on.visit("#/services", "Services", { health });
    await standing(page).toBe("✓live");
    health.take(failing);
    await page.getByRole("alert").getByText("https://10.0.0.1:6443 does not answer for services").waitFor();
    await standing(page).toBe("✕API server does not answer");
    expect(await names(page)).toHaveLength(5);
    health.take({ type: "recovered", server: "https://10.0.0.1:6443", milliseconds: 900 });
    await standing(page).toBe("✓live");
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("a user who may not read is given the reason in place of the first view", async () => {
    const health = new SourceHealth();
    const never: ObjectSource = {
      run: (_to, signal) => new Promise((end) => signal.addEventListener("abort", () => end())),
    };
    await using running = await openConsole(never, on.html, { health });
    const page = await on.browser.newPage();
    await page.goto(running.url);
    await page.getByText("opening …", { exact: true }).waitFor();
    health.take({ ...failing, problem: "refused", error: '403 services is forbidden: User "eve" cannot list' });
    await page.getByRole("alert").getByText("refuses requests for services").waitFor();
    expect(await page.getByRole("alert").textContent()).toContain('403 services is forbidden: User "eve" cannot list');
    await page.close();
  });

  test("Nodes that may not be listed, and a Node that was deleted, are named", async () => {
    const [node] = shop;
    await using forbidden = await openConsole(new LiveObjects(shop, { Node: "forbidden" }), on.html);
    const { page } = await visitPage(on.browser, forbidden.url);
    await page.getByText("You may not list Nodes").waitFor();
    const objects = new LiveObjects(shop);
    await using running = await openConsole(objects, on.html);
    const other = await visitPage(on.browser, running.url);
    if (node !== undefined) await objects.remove(node);
    await other.page.getByText("Node node-a was deleted").waitFor();
    await objects.put(service("new", { clusterIPs: ["10.96.0.99"], ports: [{ port: 80 }] }));
    await other.go("#/services", "Services");
    await other.page.getByText("6", { exact: true }).waitFor();
    if (node !== undefined) await objects.put(node);
    await other.page.getByText("Node node-a was deleted").waitFor({ state: "detached" });
  });
});

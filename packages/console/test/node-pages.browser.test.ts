import { endpointSlice } from "@fairlead/testkit";
import { openBrowser } from "@fairlead/tooling/browser";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { calmNodes, cannedAnswers, HOSTILE } from "./support/answers.ts";
import { LiveObjects, shop } from "./support/objects.ts";
import { builtPage, visitPage } from "./support/page.ts";
import { openConsole } from "./support/start.ts";

const opened = new AsyncDisposableStack();
let html = "";
let browser: Browser;
beforeAll(async () => {
  html = await builtPage();
  browser = opened.use(await openBrowser());
});
afterAll(() => opened.disposeAsync());

const nodes = { answers: () => cannedAnswers, looking: calmNodes };

describe("flows", () => {
  test("by service and endpoint, those that hang marked and first, and one service's only", async () => {
    await using running = await openConsole(new LiveObjects(shop), html, nodes);
    const { page, go } = await visitPage(browser, running.url);
    await go("#/flows", "Flows");
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
    await using running = await openConsole(new LiveObjects(shop), html, nodes);
    const { page, go, complaints } = await visitPage(browser, running.url);
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

  test("nobody is asked once it is stopped, left, or open for ten minutes", async () => {
    let asked = 0;
    const counting = async (query: URLSearchParams) => {
      asked += 1;
      return cannedAnswers.gets["/api/flows"]?.(query, undefined);
    };
    const answers = () => ({ ...cannedAnswers, gets: { ...cannedAnswers.gets, "/api/flows": counting } });
    await using running = await openConsole(new LiveObjects(shop), html, { ...nodes, answers });
    const { page, go } = await visitPage(browser, running.url);
    await page.clock.install();
    await go("#/flows", "Flows");
    await page.getByRole("heading", { name: "Connections" }).waitFor();
    const quiet = async () => {
      const before = asked;
      await page.clock.runFor(20_000);
      expect(asked).toBe(before);
    };
    await page.getByRole("button", { name: "Stop" }).click();
    await quiet();
    const stopped = asked;
    await page.getByRole("button", { name: "Go on" }).click();
    // The ten minutes begin with the first question, which comes some time after the button has changed.
    await vi.waitUntil(() => asked > stopped);
    await page.clock.fastForward(10 * 60_000);
    await page.getByText("stopped").waitFor();
    await quiet();
    await page.getByRole("button", { name: "Go on" }).click();
    await go("#/overview", "Overview");
    await quiet();
    expect(asked).toBeGreaterThan(2);
  });

  test("of a service, by its endpoints, when somebody wants them", async () => {
    await using running = await openConsole(new LiveObjects(shop), html, nodes);
    const { page, go } = await visitPage(browser, running.url);
    await go("#/service/shop/web", "shop/web");
    await page.getByRole("button", { name: "Count connections on node-a" }).press("Enter");
    const panel = page.getByRole("region", { name: "Connections" });
    expect(await panel.getByRole("row", { name: "10.144.1.5:8080" }).textContent()).toMatch(/node-a2–8\.6KB3\.8MB$/);
    expect(await panel.getByText("default/both").count()).toBe(0);
  });
});

test("doctor: what is bad comes first with what to do, node by node, what is good stays closed", async () => {
  await using running = await openConsole(new LiveObjects(shop), html, nodes);
  const { page, go } = await visitPage(browser, running.url);
  await go("#/doctor", "Doctor");
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
  await using running = await openConsole(new LiveObjects(shop), html, nodes);
  const { page, go } = await visitPage(browser, running.url);
  await go("#/networks", "Networks");
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
  await using running = await openConsole(objects, html);
  const { page, go } = await visitPage(browser, running.url);
  await go("#/service/default/nobody", "default/nobody");
  await page.getByText("Nothing has changed since this console was started").waitFor();
  const endpoints = [{ address: "10.244.0.77", nodeName: "node-b" }];
  await objects.put(endpointSlice("nobody-1", { service: "nobody", family: "IPv4", ports: [{ port: 80 }], endpoints }));
  const row = page.getByRole("region", { name: "Owners before" }).getByRole("row").nth(1);
  await row.waitFor();
  expect(await row.textContent()).toMatch(/IPv4.*ours.*another network's/);
});

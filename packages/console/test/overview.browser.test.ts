import { VirtualClock } from "@fairlead/base/testing";
import type { Flow } from "@fairlead/inspect";
import { node, type RawObject } from "@fairlead/testkit";
import type { Browser } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type ConsoleOptions, type NodeTraffic, waysOf } from "../src/index.ts";
import { inBrowser } from "./support/browser.ts";
import { LiveObjects, manyServices } from "./support/objects.ts";
import { axeFinds, expectFits, openConsole, setHidden, visitPage } from "./support/page.ts";

const on = inBrowser();

const NODES = ["node-a", "node-b", "node-c", "ip-10-0-12-123.eu-west-1.compute.internal"] as const;

function cluster(services: number): readonly RawObject[] {
  const nodes = NODES.map((name, at) => node(name, { zone: "east", addresses: [`10.201.0.${at}`] }));
  return [...nodes, ...manyServices(services)];
}

const FRONTENDS = ["cluster-ip", "cluster-ip", "cluster-ip", "node-port", "load-balancer"] as const;

function flows(services: number, client: string): readonly Flow[] {
  return Array.from({ length: Math.min(services, 300) }, (_, at): readonly Flow[] =>
    Array.from({ length: Math.ceil(40 / (at + 1)) }, (_, connection): Flow => {
      const gone = at === 1 && connection < 2;
      const endpoint = { address: "10.144.1.5", port: 8080, condition: gone ? "gone" : "ready" } as const;
      return {
        family: "IPv4",
        protocol: "TCP",
        client: { address: client, port: 1_024 + at * 40 + connection },
        frontend: {
          kind: FRONTENDS[(at + connection) % FRONTENDS.length] ?? "cluster-ip",
          address: "10.97.0.1",
          port: 80,
        },
        service: `many/service-${String(at).padStart(5, "0")}`,
        port: "",
        owner: "ours",
        endpoint: gone ? endpoint : { ...endpoint, nodeName: NODES[(at + connection) % NODES.length] ?? "" },
        replied: !gone,
        sent: { bytes: 2_000, packets: 9 },
        received: { bytes: 90_000, packets: 70 },
      };
    }),
  ).flat();
}

const FORBIDDEN =
  'pods is forbidden: User "system:serviceaccount:monitoring:reader" cannot list resource "pods" in API group "" in the namespace "kube-system"';

/** Two nodes of two modes, one that may not be looked at, and one that does not answer. */
function mixed(services: number): ConsoleOptions["looking"] {
  const answers = async <T>(name: string, answer: T): Promise<T> => {
    if (name === "node-c") throw new Error(FORBIDDEN);
    return name.startsWith("ip-") ? new Promise<T>(() => {}) : answer;
  };
  const found = {
    service: "many/service-00001",
    kind: "different" as const,
    findings: [
      {
        kind: "missing" as const,
        where: "nat KUBE-SERVICES",
        what: "-d 10.97.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA",
      },
    ],
  };
  return () => ({
    reaches: () => true,
    kernel: (name) => answers(name, [{ family: "IPv4", services: name === "node-a" ? [found] : [] }]),
    agent: (name) =>
      answers(name, {
        mode: name === "node-a" ? "iptables" : "nftables",
        healthy: true,
        version: "v0.9.0",
        lastSync: new Date().toISOString(),
      }),
    traffic: (name) =>
      answers(name, {
        ways: waysOf(flows(services, name === "node-a" ? "10.144.1.9" : "10.144.2.9")),
        since: { ms: 2_000, opened: 17, bytes: 400_000 },
      }),
  });
}

const WIDTHS = [390, 768, 1_440] as const;

/** Names that take two lines where there is room for one, and boxes that cover each other. */
const CROWDED = `[
  ...[...document.querySelectorAll(".nodes th a")].filter((one) => one.textContent.length < 10 && one.getClientRects().length > 1),
  ...[...document.querySelectorAll(".ways li + li")].filter((one) => one.getBoundingClientRect().top < one.previousElementSibling.getBoundingClientRect().bottom),
].map((one) => one.textContent)`;

describe.each([3, 2_000])("of %i services", (services) => {
  test.each(["light", "dark"])("in %s, in windows of 390, 768 and 1440 pixels", async (scheme) => {
    const looking = mixed(services);
    await using running = await openConsole(new LiveObjects(cluster(services)), on.html, {
      looking,
      sourceName: "cluster",
    });
    const { page, complaints } = await visitPage(on.browser, running.url, { dark: scheme === "dark" });
    await page.getByRole("region", { name: "What differs" }).getByText("many/service-00001").first().waitFor();
    await page.getByText("Connections tracked on 2 of 4 nodes").waitFor();
    for (const width of WIDTHS) {
      await expectFits(page, width);
      expect([width, ...(await page.evaluate<readonly string[]>(CROWDED))]).toEqual([width]);
      expect([width, ...(await axeFinds(page))]).toEqual([width]);
    }
    const [left, right] = await page
      .locator(".overview > *")
      .evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().top));
    expect(left).toBe(right);
    expect(complaints).toEqual([]);
  });
});

describe("where traffic goes", () => {
  const looking =
    (traffic: (name: string) => Promise<NodeTraffic>): ConsoleOptions["looking"] =>
    () => ({
      reaches: () => true,
      kernel: () => new Promise(() => {}),
      agent: async (name) => ({ mode: name === "node-a" ? "iptables" : "nftables", healthy: true }),
      traffic,
    });

  async function shown(more: Partial<ConsoleOptions>) {
    const running = await openConsole(new LiveObjects(cluster(3)), on.html, more);
    const { page } = await visitPage(on.browser, running.url);
    return { running, page, panel: page.getByRole("region", { name: "Where traffic goes" }) };
  }

  test("while nodes are asked it says which; what no kernel has said does not count as zero", async () => {
    const { running, page, panel } = await shown({ looking: looking(() => new Promise(() => {})) });
    await using _running = running;
    await panel.getByText(/^asking .*node-a, node-b, node-c …$/).waitFor();
    const nodes = page.getByRole("region", { name: "Nodes" });
    await nodes.getByText("0 of 4 as planned").waitFor();
    expect(await nodes.getByRole("row", { name: "node-a" }).textContent()).toMatch(/asking … \d s$/);
    expect(await page.getByRole("link", { name: /differ on 0 of 4 nodes/ }).textContent()).toMatch(/^–/);
    await expect
      .poll(() => page.locator("header .where").textContent())
      .toContain("iptables on 1, nftables on 3 nodes");
  });

  test("nothing, a node's error once, and no kernels at all", async () => {
    const nothing = await shown({ looking: looking(async () => ({ ways: [] })) });
    await using _nothing = nothing.running;
    await nothing.panel.getByText("No connection with a service is tracked on 4 of 4 nodes.").waitFor();
    const failing = await shown({ looking: looking(() => Promise.reject(new Error(FORBIDDEN))) });
    await using _failing = failing.running;
    await failing.panel.getByText("node-a, node-b, node-c: pods is forbidden").waitFor();
    const manifests = await shown({});
    await using _manifests = manifests.running;
    expect(await manifests.panel.getByText("Add --live, or look at a cluster").isVisible()).toBe(true);
    expect(await manifests.page.locator("header .where").textContent()).toContain("iptables mode");
  });

  test("each box with its connections, as a table too, and a service leads to its page", async () => {
    const { running, page, panel } = await shown({
      looking: looking(async (name) => ({ ways: name === "node-a" ? waysOf(flows(3, "10.144.1.9")) : [] })),
    });
    await using _running = running;
    const services = panel.getByRole("list", { name: "Services" });
    expect(await services.getByRole("listitem").first().textContent()).toMatch(/^many\/service-0000040/);
    expect(await panel.getByRole("list", { name: "Nodes" }).getByText("gone").count()).toBe(1);
    await panel.getByRole("button", { name: "Stop" }).click();
    await panel.getByText("stopped").waitFor();
    await panel.getByText("The same as a table").click();
    expect(await panel.getByRole("row", { name: "gone: hangs" }).first().textContent()).toMatch(/many\/service-00001/);
    await services.getByRole("link", { name: "many/service-00002" }).click();
    await page.getByRole("heading", { level: 1, name: "many/service-00002" }).waitFor();
  });
});

async function lookedAt(html: string, browser: Browser) {
  const clock = new VirtualClock();
  const asked = { agent: 0, kernel: 0, traffic: 0 };
  const counted = async <T>(what: keyof typeof asked, answer: T) => {
    asked[what] += 1;
    return answer;
  };
  const looking: ConsoleOptions["looking"] = () => ({
    reaches: () => true,
    agent: () => counted("agent", { mode: "iptables", healthy: true }),
    kernel: () => counted("kernel", []),
    traffic: () => counted("traffic", { ways: [] }),
  });
  const running = await openConsole(new LiveObjects(cluster(3)), html, { looking, clock });
  const { page } = await visitPage(browser, running.url);
  const goesOn = async () => {
    const before = { ...asked };
    const asksAgain = async () => {
      await clock.advance(2_000);
      return asked.agent > before.agent && asked.kernel > before.kernel && asked.traffic > before.traffic;
    };
    await expect.poll(asksAgain).toBe(true);
  };
  return { page, clock, asked, goesOn, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

test("no node is looked at for a page in a hidden tab, and each again once it is in view", async () => {
  await using looked = await lookedAt(on.html, on.browser);
  const { page, clock, asked, goesOn } = looked;
  await goesOn();
  const view = page.waitForResponse("**/api/view");
  await setHidden(page, true);
  await view;
  const before = { ...asked };
  await clock.advance(60_000);
  expect(asked).toEqual(before);
  await setHidden(page, false);
  await goesOn();
});

test("a tab that is hidden and shown at once is in view, also where the first word of it is slow", async () => {
  await using looked = await lookedAt(on.html, on.browser);
  const { page, goesOn } = looked;
  await goesOn();
  const slow = Promise.withResolvers<void>();
  const views: Promise<void>[] = [];
  await page.route("**/api/view", (route) => {
    const before = views.length === 0 ? slow.promise : Promise.resolve();
    const view = before.then(async () => route.fulfill({ response: await route.fetch() }));
    // Of a test that has given up nothing awaits it.
    view.catch(() => {});
    views.push(view);
  });
  await setHidden(page, true);
  await setHidden(page, false);
  // What the page has sent before this question has come as far.
  await page.evaluate("fetch('api/search?q=').then((answer) => answer.text())");
  await Promise.all(views.slice(1));
  slow.resolve();
  await expect.poll(() => views).toHaveLength(2);
  await Promise.all(views);
  await goesOn();
});

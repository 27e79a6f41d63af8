import { gzipSync } from "node:zlib";
import { node, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { calmNodes, cannedAnswers, hostileAnswers, MARKUP } from "./support/answers.ts";
import { inBrowser } from "./support/browser.ts";
import { LiveObjects, manyServices, shop } from "./support/objects.ts";
import { axeFinds, expectFits, fastPathSetup, openConsole, visitPage } from "./support/page.ts";

const on = inBrowser();

describe("pages", () => {
  test("the page is one file of less than 60 kB, compressed", () => {
    expect(gzipSync(on.html).length).toBeLessThan(60_000);
    expect(on.html).not.toMatch(/(?:src|href)="(?!data:)/);
  });

  const PLACES = [
    ["#/overview", "Overview"],
    ["#/services", "Services"],
    ["#/service/shop/web", "shop/web"],
    ["#/flows", "Flows"],
    ["#/trace?from=pod&to=10.96.0.10:80&node=node-a", "Trace"],
    ["#/networks", "Networks"],
    ["#/what-if?cidr=10.144.2.0/24", "What if"],
    ["#/doctor", "Doctor"],
    ["#/services?q=nothing", "Services"],
    ["#/nowhere", "There is no such page"],
  ] as const;

  /** Pixels that remain of 1,280 at four times the size, and those of a small phone. */
  const NARROW = [320, 390] as const;

  describe("every page", () => {
    test.each([
      ["light", false, 1_280],
      ["dark", true, 1_280],
      ["a narrow window", false, 390],
    ])("in %s: axe finds nothing, nothing else is asked for, nothing is complained of", async (_what, dark, width) => {
      const nodes = { answers: () => cannedAnswers, looking: calmNodes, setup: fastPathSetup() };
      const { page, complaints, go } = await on.visit("#/overview", "Overview", { ...nodes, dark, width });
      for (const [place, heading] of PLACES) {
        await go(place, heading);
        await page.locator("main", { hasNotText: /\basking\b/ }).waitFor();
        expect([place, ...(await axeFinds(page))]).toEqual([place]);
        for (const narrow of width === 390 ? NARROW : []) {
          await expectFits(page, narrow, place);
        }
      }
      expect(complaints).toEqual([]);
    });
  });

  test("the token is taken out of the address, and another browser cannot use it again", async () => {
    await using running = await openConsole(new LiveObjects(shop), on.html);
    const { page } = await visitPage(on.browser, running.url);
    expect(page.url()).not.toContain("token");
    const other = await (await on.browser.newContext()).newPage();
    await other.goto(running.url);
    await other.getByRole("alert").getByText("was opened before").waitFor();
    // The first one may open it as often as it likes.
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.goto(running.url);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  test("a service: owner and why, each frontend, each endpoint with why it is in or out, a picture", async () => {
    const { page } = await on.visit("#/service/shop/web", "shop/web");
    const row = (name: string) => page.getByRole("row", { name });
    expect(await row("load-balancer 203.0.113.9:80").textContent()).toMatch(/Local.*2 cluster.*masqueraded.*1 local/);
    expect(await row("10.144.2.8:8080").textContent()).toContain("terminating; other endpoints are ready");
    expect(await page.getByRole("img", { name: /3 frontends, 2 of 4 endpoints in use/ }).count()).toBe(1);
    // Seen from the other node the local set is another one.
    await page.getByLabel("Seen from node").selectOption("node-b");
    await page.getByText("plan of node-b").waitFor();
    expect(await row("10.144.2.6:8080").textContent()).toContain("✓in ready✓in ready");
  });

  test("a trace: each end with its share, red where it ends badly, and the command that says the same", async () => {
    const { page } = await on.visit("#/trace", "Trace", { answers: () => cannedAnswers });
    await page.getByLabel("To:").fill("10.96.0.10:80");
    await page.getByLabel("To:").press("Enter");
    await page.getByRole("region", { name: "50 % to 10.144.1.5:8080" }).waitFor();
    expect(await page.locator(".badge.bad").textContent()).toBe("✕reject");
    expect(page.url()).toMatch(/#\/trace\?from=pod&to=10.96.0.10%3A80&node=node-a$/);
    expect(await page.locator("code").textContent()).toContain("fairlead trace --from pod");
  });

  test("what if: which traffic a CIDR would change", async () => {
    const { page } = await on.visit("#/networks", "Networks", { answers: () => cannedAnswers });
    await page.getByRole("link", { name: "which traffic would change" }).click();
    const row = page.getByRole("row", { name: "tcp 10.96.0.10:80" });
    expect(await row.textContent()).toMatch(/10\.144\.1\.5:8080 50 %, 10\.144\.2\.6:8080 50 %.*10\.144\.1\.5:8080$/);
  });

  test("what if: CIDRs that would be held, with the line that accepts them, and services that change hands", async () => {
    const { page } = await on.visit("#/what-if", "What if", { answers: () => cannedAnswers });
    const files = [{ name: "subnet.yaml", mimeType: "text/plain", buffer: Buffer.from("kind: Subnet") }];
    await page.getByLabel("Add objects from files").setInputFiles(files);
    await expect.poll(() => page.getByRole("textbox", { name: "Objects that come" }).inputValue()).toBe("kind: Subnet");
    await page.getByRole("button", { name: "Compare" }).click();
    const changes = page.getByRole("region", { name: "What changes" });
    const row = (name: string) => changes.getByRole("row", { name });
    expect(await row("10.144.2.0/24").textContent()).toMatch(/not there▲held back .*ownership --accept.*Subnet\/blue/);
    expect(await row("shop/web IPv4").textContent()).toMatch(/✓ours▲mixed/);
    expect(await changes.getByText("calico-ippools: forbidden").isVisible()).toBe(true);
  });

  test("objects that cannot be read stand on the first page, with field and why", async () => {
    const bad = service("bad", { clusterIPs: ["10.96.0.300"], ports: [{ port: 80 }] });
    const { page } = await on.visit("#/overview", "Overview", { source: new LiveObjects([...shop, bad]) });
    await page.getByRole("heading", { name: "1 object cannot be read" }).waitFor();
    expect(await page.getByRole("row", { name: "Service default/bad" }).textContent()).toContain("spec.clusterIPs[0]");
  });

  test("a change is there by itself", async () => {
    const objects = new LiveObjects(shop);
    const { page } = await on.visit("#/services", "Services", { source: objects });
    await objects.put(service("new", { clusterIPs: ["10.96.0.99"], ports: [{ port: 443 }] }));
    await page.getByRole("link", { name: "default/new" }).waitFor();
  });

  test("the keyboard is enough", async () => {
    const { page } = await on.visit("#/services", "Services");
    await page.keyboard.press("/");
    await page.keyboard.type("10.144.2.7");
    await page.getByText("1 of 5").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "shop/web" }).waitFor();
    const focused = () => page.evaluate("document.activeElement.textContent");
    for (let times = 0; times < 10 && (await focused()) !== "Networks"; times++) await page.keyboard.press("Shift+Tab");
    expect(await focused()).toBe("Networks");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Networks" }).waitFor();
  });

  describe("hostile names stay text", () => {
    const evil = MARKUP;

    /** Nodes whose names, zones, versions, modes, findings and errors are markup. */
    const looking = () => ({
      reaches: () => true,
      traffic: async () => Promise.reject(new Error(`cannot count ${evil}`)),
      kernel: async (name: string) => {
        if (name === "node-b") throw new Error(`no kernel ${evil}`);
        const finding = { kind: "missing", where: `nat ${evil}`, what: `-j ${evil}` } as const;
        return [
          {
            family: "IPv4" as const,
            services: [
              { service: `shop/web:${evil}`, kind: "different" as const, findings: [finding] },
              { kind: "different" as const, findings: [finding] },
            ],
          },
        ];
      },
      agent: async (name: string) => {
        if (name === "node-b") throw new Error(`no agent ${evil}`);
        return { mode: `iptables${evil}`, healthy: true, version: `v1${evil}`, serviceProxyName: evil };
      },
    });
    const hostileNode = node(`node-${evil}`, { zone: `zone-${evil}`, addresses: ["10.203.0.10"] });

    test.each([
      ["#/overview", "Overview", 2],
      ["#/services", "Services", 0],
      ["#/service/shop/web", "shop/web", 1],
      ["#/flows", "Flows", 1],
      ["#/trace?from=pod&to=10.96.0.10:80&node=node-a", "Trace", 1],
      ["#/networks", "Networks", 1],
      ["#/what-if?cidr=10.144.2.0/24", "What if", 1],
      ["#/doctor", "Doctor", 1],
      [`#/services?q=${encodeURIComponent(MARKUP)}&owner=${encodeURIComponent(MARKUP)}`, "Services", 0],
      [
        `#/trace?from=${encodeURIComponent(MARKUP)}&to=${encodeURIComponent(MARKUP)}&node=${encodeURIComponent(MARKUP)}`,
        "Trace",
        0,
      ],
      [`#/flows?service=${encodeURIComponent(MARKUP)}`, "Flows", 1],
      [`#/service/${encodeURIComponent(MARKUP)}/${encodeURIComponent(MARKUP)}`, /./, 1],
      [`#/what-if?cidr=${encodeURIComponent(MARKUP)}`, "What if", 0],
      [`#/doctor?node=${encodeURIComponent(MARKUP)}`, "Doctor", 0],
      [`#/${encodeURIComponent(MARKUP)}`, "There is no such page", 0],
    ] as const)("in nodes, versions, errors, rules and addresses: %s", async (place, heading, times) => {
      await using running = await openConsole(new LiveObjects([...shop, hostileNode]), on.html, {
        answers: () => hostileAnswers,
        looking,
        setup: fastPathSetup(),
      });
      const { page, complaints, go } = await visitPage(on.browser, running.url);
      await go(place, heading);
      await page.locator("main", { hasNotText: /\basking\b/ }).waitFor();
      await expect.poll(() => page.getByText(evil).count()).toBeGreaterThanOrEqual(times);
      expect(await page.evaluate("globalThis.hacked")).toBeUndefined();
      expect(await page.locator("img, iframe, object, embed, base, script[src], main script").count()).toBe(0);
      expect(await page.locator("a:not([href^='#'])").count()).toBe(0);
      expect(complaints.filter((one) => !/40[04]/.test(one))).toEqual([]);
    });

    test("in what an API server would never let in", async () => {
      const hostile = service(evil, { clusterIPs: ["10.96.0.66"], ports: [{ name: evil, port: 80 }] });
      await using running = await openConsole(new LiveObjects([...shop, hostile]), on.html, {
        sourceName: `manifests ${evil}`,
      });
      const { page, complaints, go } = await visitPage(on.browser, running.url);
      await go("#/services", "Services");
      await page.getByText(evil).first().waitFor();
      await go(`#/service/default/${encodeURIComponent(evil)}`, evil);
      expect(await page.evaluate("globalThis.hacked")).toBeUndefined();
      expect(await page.locator("img, script[src]").count()).toBe(0);
      // The server says that it knows no such target.
      expect(complaints.filter((one) => !one.includes("400"))).toEqual([]);
    });
  });

  describe("10,000 services", () => {
    test("are there at once, are found at once, and scroll without a blank row", async ({ annotate }) => {
      const { page, go } = await on.visit("#/overview", "Overview", { source: new LiveObjects(manyServices(10_000)) });
      const began = performance.now();
      await go("#/services", "Services");
      await page.reload();
      await page.getByRole("link", { name: "many/service-00000" }).waitFor();
      await page.getByText("10000", { exact: true }).waitFor();
      const firstView = performance.now() - began;

      const search = await page.evaluate<number>(`(async () => {
        const input = document.querySelector("input[type=search]");
        const began = performance.now();
        input.value = "10.144.30.97";
        input.dispatchEvent(new InputEvent("input", { bubbles: true }));
        for (;;) {
          const rows = document.querySelectorAll(".list tbody:not(.space) tr");
          if (rows.length === 1 && rows[0].textContent.includes("service-07777")) return performance.now() - began;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      })()`);
      await page.getByRole("searchbox").fill("");
      await page.getByText("10000", { exact: true }).waitFor();
      // A busy machine's Chromium once drew no further frame of this list, and reports scrolling with frames only.
      const blanks = await page.evaluate<number>(`(async () => {
        const list = document.querySelector(".list");
        const isBlank = () => {
          const { top, bottom } = list.getBoundingClientRect();
          const rows = [...list.querySelectorAll("tbody:not(.space) tr")].map((row) => row.getBoundingClientRect());
          const first = Math.min(...rows.map((row) => row.top));
          const last = Math.max(...rows.map((row) => row.bottom));
          const end = list.scrollTop + list.clientHeight >= list.scrollHeight - 2;
          return first > top + 34 || (!end && last < bottom - 1);
        };
        let blanks = 0;
        for (let step = 1; step <= 60; step += 1) {
          const jumps = step % 10 === 0;
          list.scrollTop += jumps ? 30_000 : 600;
          // What a hand scrolls to is there before the page knows of it.
          if (!jumps && isBlank()) blanks += 1;
          list.dispatchEvent(new Event("scroll"));
          await new Promise((resolve) => setTimeout(resolve));
          if (isBlank()) blanks += 1;
        }
        return blanks;
      })()`);
      await annotate(`first view ${Math.round(firstView)} ms, search ${Math.round(search)} ms`);
      expect(blanks).toBe(0);
      // Only the rows in view are in the page, which is why it is fast.
      expect(await page.locator(".list tbody:not(.space) tr").count()).toBeLessThan(200);
    });
  });
});

describe("late effects", () => {
  /** Effects come with the next frame, or 35 ms later where there is none: here a second later. */
  const LATE = `
  const soon = window.setTimeout;
  window.requestAnimationFrame = () => 0;
  window.setTimeout = (work, after = 0, ...rest) => soon(work, after === 35 ? 1_000 : after, ...rest);
`;

  test("what the server sends before the page's first effects is shown", async () => {
    const { page } = await on.visit("#/services", "Services", { looking: calmNodes, script: LATE });
    expect(await page.getByRole("link", { name: "shop/web" }).count()).toBeGreaterThan(0);
  });
});

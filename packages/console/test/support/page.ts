import { request } from "node:http";
import { parseArguments } from "@fairlead/config";
import { Memory } from "@fairlead/endpoint-filter";
import { filterSettings, networksSettings } from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { buildPage } from "../../build/page.ts";
import { type AgentSetup, type ConsoleOptions, type RunningConsole, startConsole } from "../../src/index.ts";

let built: Promise<string> | undefined;

/** The page as it is published; built once in a test's process. */
export function builtPage(): Promise<string> {
  built ??= buildPage().then(({ html }) => html);
  return built;
}

export interface Visit {
  readonly page: Page;
  /** What the page asked for elsewhere, and what the browser complained of: nothing, if all is well. */
  readonly complaints: readonly string[];
  /** Goes to a place of the page, such as `#/services`, and waits for its heading. */
  go(place: string, heading: string | RegExp): Promise<void>;
}

export interface VisitOptions {
  readonly dark?: boolean;
  /** Of the window in pixels; default 1280. */
  readonly width?: number;
  /** What runs in the page before its own. */
  readonly script?: string;
}

/** Opens the address as its first visitor, until the test ends. */
export async function visitPage(browser: Browser, url: string, options: VisitOptions = {}): Promise<Visit> {
  const colorScheme = options.dark === true ? "dark" : "light";
  const viewport = { width: options.width ?? 1_280, height: 800 };
  const context = await browser.newContext({ colorScheme, viewport });
  onTestFinished(() => context.close());
  if (options.script !== undefined) await context.addInitScript(options.script);
  const page = await context.newPage();
  const complaints: string[] = [];
  const { origin } = new URL(url);
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${origin}/`) && !asked.startsWith("data:")) complaints.push(`asked for ${asked}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  const headed = async (heading: string | RegExp) => {
    try {
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    } catch (cause) {
      const shown = await page.locator("body").textContent();
      throw new Error(`no heading ${heading} on the page, which shows: ${shown}; ${complaints.join("; ")}`, { cause });
    }
  };
  await page.goto(url);
  await headed("Overview");
  const [base = ""] = page.url().split("#");
  return {
    page,
    complaints,
    go: async (place, heading) => {
      await page.goto(`${base}${place}`);
      await headed(heading);
    },
  };
}

/** As if another tab was opened over it, or it was come back to. */
export async function setHidden(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, "hidden", { configurable: true, value: ${hidden} });
    document.dispatchEvent(new Event("visibilitychange"));
  `);
}

/** What axe finds on the page: each rule with the first element. */
export async function axeFinds(page: Page): Promise<readonly string[]> {
  // By the debugger's way: the page's own policy forbids added scripts.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>("axe.run()");
  return violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
}

/**
 * Makes the window this wide and expects that nothing stands beyond its right edge, so that the page would have to be
 * scrolled. Curves are drawn anew some frames after their place changed; a busy browser draws none for a while.
 */
export async function expectFits(page: Page, width: number, place?: string): Promise<void> {
  await page.setViewportSize({ width, height: 800 });
  await expect
    .poll(async () => [place, width, ...(await page.evaluate<readonly string[]>(TOO_WIDE))])
    .toEqual([place, width]);
}

const TOO_WIDE = `
  [...document.querySelectorAll("body, body *")]
    .filter((one) => one.closest(".scroll, .list, svg, .hidden, .skip, .ways li") === null || one.matches(".scroll, .list"))
    .filter((one) => {
      const { left, right } = one.getBoundingClientRect();
      return (one.matches(".scroll, .list, textarea, input") ? right : left + one.scrollWidth) > innerWidth + 1;
    })
    .map((one) => one.outerHTML.slice(0, 120))
    .concat(document.documentElement.scrollWidth > innerWidth ? ["the document"] : [])
`;

/** How agents with these flags are set up. Default: those of `shop`. */
export function setupOf(flags = ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16"]): AgentSetup {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error("these flags are good");
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join());
  const { config } = parsed;
  const networks = networksSettings(config, filter.options);
  return { mode: "iptables", config, filter: filter.options, networks, memory: new Memory() };
}

export function fastPathSetup(): AgentSetup {
  const { config, ...setup } = setupOf(["--cluster-cidr=10.144.0.0/16", "--proxy-mode=nftables"]);
  const nftables = { ...config.nftables, fastPath: { devices: ["cali*"] } };
  return { ...setup, mode: "nftables", config: { ...config, nftables } };
}

/** A console that ends with the block it is used in. */
export async function openConsole(
  source: ObjectSource,
  html: string,
  more: Partial<ConsoleOptions> = {},
): Promise<RunningConsole & AsyncDisposable> {
  const stop = new AbortController();
  const options = { html, port: 0, version: "0.0.0", sourceName: "manifests shop.yaml", source, setup: setupOf() };
  const running = await startConsole({ ...options, nodeName: "node-a", ...more }, stop.signal);
  return {
    ...running,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.ended;
      await running.close();
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** Asks as a program does, with whatever headers it likes. */
export function visit(
  url: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** What the address that is printed is made of. */
export function addressOf(url: string): { readonly base: string; readonly origin: string; readonly token: string } {
  const [base = "", token = ""] = url.split("#token=");
  return { base, origin: new URL(url).origin, token };
}

export async function cookieOf(url: string): Promise<string> {
  const { base, origin, token } = addressOf(url);
  const { headers } = await visit(`${base}session`, {
    method: "POST",
    headers: { origin },
    body: JSON.stringify({ token }),
  });
  const [cookie = ""] = headers["set-cookie"] ?? [];
  return cookie.split(";", 1)[0] ?? "";
}

import { openBrowser } from "@fairlead/tooling/browser";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BuiltSite, builtSite } from "./support/built-site.ts";

const opened = new AsyncDisposableStack();
let site: BuiltSite;
let browser: Browser;
beforeAll(async () => {
  site = opened.use(await builtSite());
  browser = opened.use(await openBrowser());
});
afterAll(() => opened.disposeAsync());

async function visit(path: string, { dark = false, width = 1_280 } = {}) {
  const colorScheme = dark ? "dark" : "light";
  const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } });
  const complaints: string[] = [];
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(site.url) && !asked.startsWith("data:")) complaints.push(`asked for ${asked}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`${site.url}${path}`);
  return { page, complaints };
}

async function findings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>("axe.run()");
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

test("the site is built without a warning: no dead link, no @link to nothing", () => expect(site.right).toBe(true));

test.each([
  ["light", { dark: false }],
  ["dark", { dark: true }],
  ["narrow", { width: 390 }],
])("the tracer, %s: the demo's packet reaches each endpoint, axe finds nothing", async (_, look) => {
  const { page, complaints } = await visit("docs/tracer.html", look);
  await page.getByRole("heading", { name: "33.3 % to 10.144.2.6:8080, masqueraded" }).waitFor();
  expect(await page.locator(".tracer-end h3").allTextContents()).toHaveLength(3);
  await page.getByText("shop/web:http cluster IP").first().waitFor();
  expect(await findings(page)).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  expect(complaints).toEqual([]);
  await page.close();
});

test("the tracer answers for nftables, for pasted rules, and says what is wrong", async () => {
  const { page, complaints } = await visit("docs/tracer.html");
  const trace = () => page.getByRole("button", { name: "Trace" }).click();
  const rules = page.getByRole("combobox", { name: "Rules" });
  await rules.selectOption("nftables");
  await page.getByRole("combobox", { name: "To", exact: true }).fill("10.96.0.11:80");
  await trace();
  await page.getByRole("heading", { name: "100 % reject with" }).waitFor();
  await page.getByText("@no-endpoint-services").first().waitFor();

  await rules.selectOption("pasted");
  await page.getByRole("textbox", { name: "Pasted rules" }).fill("*filter\n:INPUT DROP [0:0]\nCOMMIT\n");
  await page.getByRole("combobox", { name: "To", exact: true }).fill("10.201.0.10:22");
  await trace();
  await page.getByRole("heading", { name: "100 % drop" }).waitFor();

  await page.getByRole("combobox", { name: "From", exact: true }).fill("anywhere");
  await trace();
  await page.getByText("must be SOURCE→ADDRESS:PORT").waitFor();
  expect(complaints).toEqual([]);
  await page.close();
});

test("a mode's page draws its diagram, and the search finds a package's export", async () => {
  const { page, complaints } = await visit("docs/iptables.html");
  await page.locator(".diagram svg").first().waitFor();
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("combobox").fill("traceText");
  await page.locator("#tsd-search-results [role=option]").first().click();
  await page
    .getByRole("heading", { name: /traceText/ })
    .first()
    .waitFor();
  expect(new URL(page.url()).pathname).toBe("/packages/trace/traceText.html");
  expect(complaints).toEqual([]);
  await page.close();
});

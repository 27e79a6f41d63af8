/**
 * `pnpm screenshots`: pictures of the site as it is built, in site/screenshots, which git ignores; and that of
 * docs/tracer.md.
 */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openBrowser } from "@fairlead/tooling/browser";
import { repositoryDir, siteDir } from "../src/paths.ts";
import { builtSite } from "../test/support/built-site.ts";

const PAGES = [
  { name: "home", path: "", shown: "h1" },
  { name: "mode", path: "docs/iptables.html", shown: ".diagram svg" },
  { name: "reference", path: "packages/trace/traceText.html", shown: "h1" },
  { name: "tracer", path: "docs/tracer.html", shown: ".tracer-end" },
] as const;

const LOOKS = [
  { look: "light", colorScheme: "light", viewport: { width: 1_280, height: 800 } },
  { look: "dark", colorScheme: "dark", viewport: { width: 1_280, height: 800 } },
  { look: "narrow", colorScheme: "light", viewport: { width: 390, height: 800 } },
] as const;

const folder = join(siteDir, "screenshots");
await mkdir(folder, { recursive: true });
await using site = await builtSite();
await using browser = await openBrowser();
for (const { look, ...options } of LOOKS) {
  for (const { name, path, shown } of PAGES) {
    const page = await browser.newPage(options);
    await page.goto(`${site.url}${path}`);
    await page.locator(shown).first().waitFor();
    await page
      .locator(shown === ".tracer-end" ? "#tracer h2" : shown)
      .first()
      .scrollIntoViewIfNeeded();
    await page.screenshot({ path: join(folder, `${name}-${look}.png`) });
    await page.close();
  }
}

const page = await browser.newPage({ viewport: { width: 1_000, height: 640 } });
await page.goto(`${site.url}docs/tracer.html`);
await page.locator(".tracer-end").first().waitFor();
await page.evaluate("scrollTo(0, document.querySelector('.tracer-row').getBoundingClientRect().top - 60)");
await page.screenshot({ path: join(repositoryDir, "docs/site-tracer.png") });

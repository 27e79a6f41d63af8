import { openBrowser } from "@fairlead/tooling/browser";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calmNodes } from "./support/answers.ts";
import { LiveObjects } from "./support/live-objects.ts";
import { shop } from "./support/objects.ts";
import { builtPage } from "./support/page.ts";
import { openConsole } from "./support/start.ts";
import { visitPage } from "./support/visit-page.ts";

const opened = new AsyncDisposableStack();
let browser: Browser;
beforeAll(async () => {
  browser = opened.use(await openBrowser());
});
afterAll(() => opened.disposeAsync());

/** Effects come with the next frame, or 35 ms later where there is none: here a second later. */
const LATE = `
  const soon = window.setTimeout;
  window.requestAnimationFrame = () => 0;
  window.setTimeout = (work, after = 0, ...rest) => soon(work, after === 35 ? 1_000 : after, ...rest);
`;

test("what the server tells before the page's first effects is shown", async () => {
  await using running = await openConsole(new LiveObjects(shop), await builtPage(), { looking: calmNodes });
  const { page, go } = await visitPage(browser, running.url, { script: LATE });
  await go("#/services", "Services");
  expect(await page.getByRole("link", { name: "shop/web" }).count()).toBeGreaterThan(0);
});

import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { buildPage } from "../../build/page.ts";

let built: Promise<string> | undefined;

/** The page as it is published; built once in a test's process. */
export function builtPage(): Promise<string> {
  built ??= buildPage().then(({ html }) => html);
  return built;
}

interface Visit {
  readonly page: Page;
  /** What the page asked for elsewhere, and what the browser complained of: nothing, if all is well. */
  readonly complaints: readonly string[];
  /** Goes to a place of the page, such as `#/services`, and waits for its heading. */
  go(place: string, heading: string | RegExp): Promise<void>;
}

/**
 * Opens the address as its first visitor.
 *
 * @param options width: of the window in pixels, default 1280; script: what runs in the page before its own
 */
export async function visitPage(
  browser: Browser,
  url: string,
  options: { readonly dark?: boolean; readonly width?: number; readonly script?: string } = {},
): Promise<Visit> {
  const colorScheme = options.dark === true ? "dark" : "light";
  const viewport = { width: options.width ?? 1_280, height: 800 };
  const context = await browser.newContext({ colorScheme, viewport });
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

/** What axe finds on the page: each rule with the first element. */
export async function axeFinds(page: Page): Promise<readonly string[]> {
  // By the debugger's way: the page's own policy lets nobody add a script.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>("axe.run()");
  return violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
}

/** What stands beyond the right edge of the window, so that the page would have to be scrolled. */
export async function tooWide(page: Page): Promise<readonly string[]> {
  // Curves are drawn anew in the frame after the one that finds their place changed.
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
  return page.evaluate(TOO_WIDE);
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

import { openBrowser } from "@fairlead/tooling/browser";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { builtPage } from "./page.ts";

/** The page and a browser for the tests of a file or block, which are there when its tests run. */
export function inBrowser(): { readonly html: string; readonly browser: Browser } {
  const opened = new AsyncDisposableStack();
  let there: { readonly html: string; readonly browser: Browser } | undefined;
  beforeAll(async () => {
    there = { html: await builtPage(), browser: opened.use(await openBrowser()) };
  });
  afterAll(() => opened.disposeAsync());
  const now = () => {
    if (there === undefined) throw new Error("the browser is there while tests run");
    return there;
  };
  return {
    get html() {
      return now().html;
    },
    get browser() {
      return now().browser;
    },
  };
}

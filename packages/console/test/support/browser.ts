import { openBrowser } from "@fairlead/tooling/browser";
import type { ObjectSource } from "@fairlead/watch";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { ConsoleOptions } from "../../src/index.ts";
import { LiveObjects, shop } from "./objects.ts";
import { builtPage, openConsole, type Visit, type VisitOptions, visitPage } from "./page.ts";

interface Shown extends Partial<Omit<ConsoleOptions, "source">>, VisitOptions {
  /** Default: the objects of `shop`. */
  readonly source?: ObjectSource;
}

interface InBrowser {
  readonly html: string;
  readonly browser: Browser;
  /** A console, which ends with the test, and a page of it at a place with that heading. */
  visit(place: string, heading: string, shown?: Shown): Promise<Visit>;
}

/** The page and a browser for the tests of a file or block, which are there when its tests run. */
export function inBrowser(): InBrowser {
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
    async visit(place, heading, { source = new LiveObjects(shop), ...shown } = {}) {
      const running = await openConsole(source, now().html, shown);
      onTestFinished(() => running[Symbol.asyncDispose]());
      const visited = await visitPage(now().browser, running.url, shown);
      await visited.go(place, heading);
      return visited;
    },
  };
}

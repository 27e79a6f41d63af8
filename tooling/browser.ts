import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium } from "playwright-core";
import { BROWSER } from "./browser-program.ts";

/** Nothing but the page itself is asked for, and nothing of an earlier run is known. */
const ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Milliseconds, the end of a hang: a busy machine takes minutes for what takes a moment. Below the limit of tests. */
const PATIENCE_MS = 300_000;

/** A real browser with an empty profile, which goes with it. */
export async function openBrowser(): Promise<Browser & AsyncDisposable> {
  const profile = await mkdtemp(join(tmpdir(), "fairlead-browser-"));
  const env = { ...process.env, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile, HOME: profile };
  const browser = await chromium.launch({ executablePath: BROWSER, args: ARGS, env, timeout: PATIENCE_MS });
  const open = browser.newContext.bind(browser);
  return Object.assign(browser, {
    newContext: async (options?: BrowserContextOptions) => {
      const context = await open(options);
      context.setDefaultTimeout(PATIENCE_MS);
      return context;
    },
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  });
}

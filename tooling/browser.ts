import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
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

/** A real browser with an empty profile, which goes with it. */
export async function openBrowser(): Promise<Browser & AsyncDisposable> {
  const profile = await mkdtemp(join(tmpdir(), "fairlead-browser-"));
  const env = { ...process.env, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile, HOME: profile };
  const browser = await chromium.launch({ executablePath: BROWSER, args: ARGS, env });
  return Object.assign(browser, {
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  });
}

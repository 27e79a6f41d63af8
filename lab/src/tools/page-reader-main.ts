import { createInterface } from "node:readline";
import { BROWSER } from "@fairlead/tooling/browser-program";
import { chromium } from "playwright-core";

/**
 * A browser in whatever network namespace this process is in: opens an address, and prints what stands on the page, one
 * JSON text a line, whenever that changes. A line of standard input is `go PLACE` or `shot FILE`. Arguments: the
 * address, and a folder for its profile.
 */
const [, , url = "", profile = ""] = process.argv;
const QUIET = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"];
/** As long as the reader waits: a busy machine takes minutes for what takes a moment. */
const PATIENCE_MS = 300_000;
const context = await chromium.launchPersistentContext(profile, {
  executablePath: BROWSER,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-sync", ...QUIET],
  viewport: { width: 1280, height: 800 },
  timeout: PATIENCE_MS,
});
context.setDefaultTimeout(PATIENCE_MS);
const page = await context.newPage();
await page.exposeFunction("report", (text: string) => process.stdout.write(`${JSON.stringify(text)}\n`));
await page.goto(url);
await page.getByRole("heading", { level: 1 }).waitFor();
await page.evaluate(`{
  let before = "";
  const look = () => {
    const { innerText } = document.querySelector("main");
    if (innerText !== before) report((before = innerText));
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
}`);
for await (const line of createInterface(process.stdin)) {
  const [verb = "", what = ""] = line.split(" ");
  if (verb === "go") await page.evaluate(`location.hash = ${JSON.stringify(what)}`);
  if (verb === "shot") await page.screenshot({ path: what });
}
await context.close();

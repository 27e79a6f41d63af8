import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import type { Browser } from "playwright-core";

/** One start; milliseconds from the process's own, but for the last two. */
export interface Start {
  /** The address is printed. */
  readonly address: number;
  /** The overview has every service. */
  readonly view: number;
  /** The list of services shows its first rows. */
  readonly list: number;
  /** Processor time of the server until then. */
  readonly cpu: number;
  /** From the question to the end of everything, for one who comes later. */
  readonly again: number;
}

const PROGRAM = join(import.meta.dirname, "..", "..", "..", "apps", "cli", "dist", "main.js");

/**
 * Starts the console, and visits it as soon as its address is known.
 *
 * @param services how many the overview has to count
 * @throws Error when it ends at once, or the page does not come
 */
export async function measured(browser: Browser, args: readonly string[], services: number): Promise<Start> {
  await using opened = new AsyncDisposableStack();
  const began = performance.now();
  const since = () => performance.now() - began;
  const argv = [process.execPath, PROGRAM, "console", "--no-open", ...args] as const;
  const output = createRunner().stream(argv, { timeoutMs: 0 })[Symbol.asyncIterator]();
  // Who reads no more ends the process.
  opened.defer(async () => void (await output.return?.()));
  const { value } = await output.next();
  const [url = ""] = String(value).split("\n");
  const address = since();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  opened.defer(() => context.close());
  const page = await context.newPage();
  await page.goto(url);
  await page.locator(".tile", { hasText: `${services}services` }).waitFor();
  const view = since();
  await page.evaluate("location.hash = '#/services'");
  await page.locator(".list tbody:not(.space) tr").first().waitFor();
  const list = since();
  const cpu = await processorTime();
  return { address, view, list, cpu, again: await page.evaluate(EVERYTHING) };
}

/** Milliseconds that the stream takes to tell everything. */
const EVERYTHING = `(async () => {
  const began = performance.now();
  const events = new EventSource("events");
  await new Promise((resolve) => events.addEventListener("whole", resolve));
  events.close();
  return performance.now() - began;
})()`;

/** Of the console that this process has started; the kernel counts hundredths of a second. */
async function processorTime(): Promise<number> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, "utf8");
  for (const pid of children.trim().split(" ")) {
    if (!(await readFile(`/proc/${pid}/cmdline`, "utf8")).includes(PROGRAM)) continue;
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13)
      .map(Number);
    return (user + system) * 10;
  }
  throw new Error(`no ${PROGRAM} is running`);
}

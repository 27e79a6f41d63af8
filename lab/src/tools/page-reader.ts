import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { CommandError, type RunResult } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";
import type { Lab } from "../plain/lab.ts";
import { isThere } from "../support/machine.ts";

const reader = fileURLToPath(new URL("page-reader-main.ts", import.meta.url));

/** A page of the console, read in the same namespace as it is served in. */
export interface PageReader extends AsyncDisposable {
  /** Goes to a place of the page, such as `#/services`. */
  go(place: string): void;
  /** Resolves with the text of the page as soon as it matches. */
  until(pattern: RegExp): Promise<string>;
}

/** Starts `fairlead console` in a namespace, and a browser that has it open. */
export async function readConsole(
  namespace: Pick<NetworkNamespace, "argvPrefix" | "env">,
  args: readonly string[],
): Promise<PageReader> {
  await using opened = new AsyncDisposableStack();
  const start = (argv: readonly string[]) => {
    const [program = "", ...rest] = [...namespace.argvPrefix, "setpriv", "--pdeathsig", "KILL", ...argv];
    const child = execa(program, rest, { env: { ...namespace.env }, stdin: "pipe", buffer: false, reject: false });
    opened.defer(async () => {
      child.kill("SIGTERM");
      await child;
    });
    return child;
  };
  const served = start([process.execPath, tool, "console", "--no-open", ...args]);
  const failed = served.then(({ shortMessage }): never => {
    throw new Error(`fairlead console ended: ${shortMessage ?? "by itself"}`);
  });
  const [url = ""] = await Promise.race([once(createInterface(served.stdout), "line"), failed]);
  const profile = await mkdtemp(join(tmpdir(), "fairlead-browser-"));
  opened.defer(() => rm(profile, { recursive: true, force: true }));
  const browser = start([process.execPath, "--no-warnings", reader, String(url), profile]);
  const texts = new Texts();
  createInterface(browser.stdout).on("line", (line) => texts.take(JSON.parse(line)));
  const kept = opened.move();
  return {
    go: (place) => void browser.stdin.write(`go ${place}\n`),
    until: (pattern) => texts.until(pattern),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** On a busy machine. */
const PATIENCE_MS = 300_000;

/** The last text, and the call that waits for another one. */
class Texts {
  #text = "";
  #check = () => {};

  take(text: string): void {
    this.#text = text;
    this.#check();
  }

  until(pattern: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${pattern} does not match:\n${this.#text}`)), PATIENCE_MS);
      this.#check = () => {
        if (!pattern.test(this.#text)) return;
        clearTimeout(late);
        resolve(this.#text);
      };
      this.#check();
    });
  }
}

/** The built program. */
export const tool = fileURLToPath(new URL("../../../apps/cli/dist/main.js", import.meta.url));

/** How a command line of `fairlead` ended: 1 is an answer as well. */
export interface ToolResult {
  readonly code: 0 | 1;
  readonly out: string;
}

/** @param run runs it */
export async function answerOf(run: () => Promise<RunResult>): Promise<ToolResult> {
  try {
    return { code: 0, out: (await run()).stdout };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode !== 1) throw error;
    return { code: 1, out: error.stdout };
  }
}

/** Whether it has been built. */
export function hasTool(): Promise<boolean> {
  return isThere(tool);
}

export async function requireTool(): Promise<void> {
  if (await hasTool()) return;
  throw new Error(`there is no tool at ${tool}; build it with: pnpm --filter @fairlead/cli build`);
}

/** Runs `fairlead` on node-a of a lab. */
export function fairlead(lab: Lab, ...args: readonly string[]): Promise<ToolResult> {
  return answerOf(() => lab.runner("node-a").run([process.execPath, tool, ...args], { timeoutMs: PATIENCE_MS }));
}

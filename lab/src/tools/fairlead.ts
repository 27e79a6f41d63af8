import { fileURLToPath } from "node:url";
import { CommandError } from "@fairlead/kernel";
import type { Lab } from "../plain/lab.ts";
import { isThere } from "../support/machine.ts";

/** The built program. */
export const tool = fileURLToPath(new URL("../../../apps/cli/dist/main.js", import.meta.url));

/** How a command line of `fairlead` ended. */
interface ToolResult {
  readonly code: number;
  readonly out: string;
}

/** Whether it has been built. */
export function hasTool(): Promise<boolean> {
  return isThere(tool);
}

/** @throws Error that says how to build it */
export async function requireTool(): Promise<void> {
  if (await hasTool()) return;
  throw new Error(`there is no tool at ${tool}; build it with: pnpm --filter @fairlead/cli build`);
}

/** Runs `fairlead` on node-a of a lab, where exit code 1 is an answer as well. */
export async function fairlead(lab: Lab, ...args: readonly string[]): Promise<ToolResult> {
  const argv = [process.execPath, tool, ...args] as const;
  let out = "";
  try {
    for await (const piece of lab.runner("node-a").stream(argv, { timeoutMs: 120_000 })) out += piece;
    return { code: 0, out };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode !== 1) throw error;
    return { code: 1, out };
  }
}

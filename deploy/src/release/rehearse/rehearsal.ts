import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LocalServer } from "./registries.ts";
import type { Scratch } from "./scratch.ts";

/** What the steps of a rehearsal have in common. */
export interface Rehearsal {
  readonly scratch: Scratch;
  readonly npm: LocalServer;
  readonly images: LocalServer;
  /** Of the image, with a comma between. */
  readonly arches: string;
  /** Where the action's repository is cloned from; absent: GitHub. */
  readonly action?: string;
}

/** One step of a release: commands of the workflow, and what came of them in a few words. */
export interface RehearsalStep {
  readonly name: string;
  /** @throws Error when a release would fail here */
  run(rehearsal: Rehearsal): Promise<string>;
}

/** A command of `pnpm release`, as the workflow runs it. */
export function release(scratch: Scratch, ...args: readonly string[]): Promise<string> {
  return scratch.inCheckout(["pnpm", "--silent", "release", ...args]);
}

/** The version that the checkout has now. */
export async function versionOf({ checkout }: Scratch): Promise<string> {
  const { version } = JSON.parse(await readFile(join(checkout, "apps/agent/package.json"), "utf8"));
  return String(version);
}

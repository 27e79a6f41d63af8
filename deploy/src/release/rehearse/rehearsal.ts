import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BundleSize } from "../bundle-size.ts";
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

/** One step of a release: commands of the workflow. */
export interface RehearsalStep {
  readonly name: string;
  /** @throws Error when a release would fail here */
  run(rehearsal: Rehearsal): Promise<StepResult>;
}

export interface StepResult {
  /** What came of it, in a few words. */
  readonly said: string;
  readonly installs?: readonly Install[];
  readonly bundles?: readonly BundleSize[];
}

/** What was released, as one of its users gets it. */
export interface Install {
  /** A package manager's command, or a program that fetches. */
  readonly by: string;
  /** Of that program; absent: it is part of this project's tests. */
  readonly version?: string;
  /** What was run of it afterwards. */
  readonly ran: string;
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

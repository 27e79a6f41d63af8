import { test } from "vitest";
import { namespaceSupport } from "../src/netns/index.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();

/** Why tests on the real kernel cannot run here; undefined where they can. */
export const noKernel: string | undefined = support.ok ? undefined : support.reason;

/** A test that needs a network namespace: skipped with the reason where there can be none, a failure where CI=1. */
export function kernelTest(name: string, body: () => Promise<void>): void {
  test(name, { timeout: 30_000 }, async ({ skip }) => {
    if (noKernel !== undefined) {
      if (CI !== "") throw new Error(`CI must run this: ${noKernel}`);
      skip(noKernel);
    }
    await body();
  });
}

import { missingHere } from "@fairlead/lab/support/machine";
import { takeInventory } from "@fairlead/lab/support/run-inventory";
import { expect, test } from "vitest";

/**
 * Suites that need a real kernel, one after the other in the order in which they are declared. Where the machine cannot
 * run them, one line says why; in CI that is a failure.
 */
export async function onRealKernel(declare: () => Promise<void>): Promise<void> {
  const missing = await missingHere();
  if (missing === undefined) {
    const before = await takeInventory();
    await declare();
    // A process that was killed takes a moment to end.
    test("nothing is left behind", () => expect.poll(takeInventory).toEqual(before));
  } else {
    test("tests on the real kernel", ({ skip }) => {
      const { CI = "" } = process.env;
      if (CI !== "") throw new Error(`CI must run the tests on the real kernel: ${missing}`);
      skip(missing);
    });
  }
}

import { test } from "vitest";
import { missingHere } from "../src/support/machine.ts";

/**
 * Everything that needs a real kernel, one suite after the other. Where the machine cannot run it, one line says why;
 * in CI that is a failure.
 */
const missing = await missingHere();

if (missing === undefined) {
  await import("./kernel/self-test.ts");
  await import("./kernel/conformance.ts");
} else {
  test("tests on the real kernel", ({ skip }) => {
    const { CI = "" } = process.env;
    if (CI !== "") throw new Error(`CI must run the tests on the real kernel: ${missing}`);
    skip(missing);
  });
}

import { TestRunner } from "vitest";

/**
 * The signal of the test that runs, for support that is not given it; in hooks around a file one that never aborts.
 * Tests that run at once (`test.concurrent`) have to hand over their own.
 */
export function testSignal(): AbortSignal {
  return TestRunner.getCurrentTest()?.context.signal ?? new AbortController().signal;
}

import { errorText } from "@fairlead/base";
import { CommandError, type FlowtableTest, type Runner, runFlowtableTest } from "@fairlead/kernel";

/** The first argument of the process that runs the test; no flag of the agent. */
export const FLOWTABLE_TEST = "test-flowtable";

/** A stalled connection is a failure; the whole test takes well below a second. */
const LIMIT_MS = 30_000;

/** Runs the test in a process of its own, which enters network namespaces. */
export async function testFlowtable(runner: Runner): Promise<FlowtableTest> {
  const [, program = ""] = process.argv;
  const argv = [process.execPath, ...process.execArgv, program, FLOWTABLE_TEST] as const;
  try {
    const { stdout } = await runner.run(argv, { timeoutMs: LIMIT_MS });
    return JSON.parse(stdout);
  } catch (error) {
    if (error instanceof CommandError && error.timedOut)
      return { outcome: "failed", reason: `a connection stalled: no answer within ${LIMIT_MS / 1000} s` };
    return { outcome: "impossible", reason: errorText(error) };
  }
}

/** What that process does. */
export async function flowtableTestProcess(): Promise<string> {
  const tested = await runFlowtableTest().catch(
    (error: unknown): FlowtableTest => ({ outcome: "impossible", reason: errorText(error) }),
  );
  return JSON.stringify(tested);
}

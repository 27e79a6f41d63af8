import { createInterface } from "node:readline";

/**
 * For a script that `startScript` runs: says that it is ready, and answers each line of standard input with one. Ends
 * the process with standard input, so that it never outlives the process that started it.
 */
export function answerLines(answer: (line: string) => string | Promise<string>, ready = "ready"): void {
  process.stdout.write(`${ready}\n`);
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => process.stdout.write(`${await answer(line)}\n`));
  lines.on("close", () => process.exit(0));
}

import { basename } from "node:path";
import { runCommandLine } from "./cli.ts";
import { lazyRunner } from "./frame/runner.ts";
import { createProgress } from "./output/progress.ts";
import { styleFor } from "./output/style.ts";

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
// A reader that has seen enough (head, less) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 3));

const code = await runCommandLine(process.argv.slice(2), {
  program: basename(process.argv[1] ?? "").startsWith("kubectl-") ? "kubectl fairlead" : "fairlead",
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  warn: (line) => process.stderr.write(`${line}\n`),
  style: styleFor(process.stdout.isTTY === true, process.env),
  readStandardInput: async () => (await import("node:stream/consumers")).buffer(process.stdin),
  progress: createProgress(process.stderr),
  runner: lazyRunner(),
  signal: stop.signal,
});
// What is still on its way to a pipe gets there first; sockets that are still open keep nobody.
process.stdout.write("", () => process.exit(code));

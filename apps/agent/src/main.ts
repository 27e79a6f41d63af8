import { readFileSync } from "node:fs";
import { runCommandLine } from "./cli.ts";
import { setUpEngine } from "./start/engine.ts";

setUpEngine();
const code = await runCommandLine(process.argv.slice(2), {
  readFile: (path) => readFileSync(path, "utf8"),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
// Watchers and processes that are still there must not keep it.
process.exit(code);

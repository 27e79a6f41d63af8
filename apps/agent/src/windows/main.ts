/** The process on Windows. It has a bundle of its own: nothing of it is in Linux', nothing of Linux' modes in it. */

import { fstatSync } from "node:fs";
import { join } from "node:path";
import { tooOld } from "@fairlead/base";
import { PROCESS_IO, runCommandLine } from "../cli.ts";
import { setUpEngine } from "../start/engine.ts";
import { endOnSignal, endProcess, inspectorProblem } from "../start/process.ts";

const problem =
  tooOld("fairlead-proxy", [22, 14], process.versions.node) ??
  inspectorProblem(process.execArgv, process.env["NODE_OPTIONS"]);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
setUpEngine();
endOnSignal();
endWithInput();
const { ProgramData = "C:\\ProgramData" } = process.env;
const code = await runCommandLine(process.argv.slice(2), PROCESS_IO, {
  platform: "windows",
  stateDir: join(ProgramData, "fairlead"),
  load: async () => (await import("./host.ts")).runWindows,
});
endProcess(code);

/** A program that started this one has no SIGTERM for it: it closes the pipe to it. Without a pipe nothing is read. */
function endWithInput(): void {
  if (!isPipe(0)) return;
  process.stdin.once("end", () => process.emit("SIGBREAK")).resume();
  process.stdin.unref();
}

/** On Windows isFIFO() of Node is false for every file. */
function isPipe(descriptor: number): boolean {
  try {
    return (fstatSync(descriptor).mode & 0o170000) === 0o010000;
  } catch {
    return false;
  }
}

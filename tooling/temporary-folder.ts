import { rmSync } from "node:fs";
import { isGuarded, startGuard } from "./guard.mjs";

/**
 * What tests put into the folder for temporary files goes into one of their run's own, and with it when the run ends,
 * however it ends. A run that a script has started (scripts/steps.mjs) has the script's.
 *
 * Each project of a run calls it; the first makes the folder for all of them, so that paths stay short: a socket's path
 * has 107 bytes.
 */
export default function setup(): () => void {
  if (isGuarded()) return () => {};
  const before = process.env["TMPDIR"];
  // It ends with this process: before that, workers still have the folder.
  const { folder } = startGuard("fairlead-tests");
  process.env["TMPDIR"] = folder;
  return () => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    rmSync(folder, { recursive: true, force: true });
  };
}

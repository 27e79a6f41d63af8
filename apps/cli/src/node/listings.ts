import { IP_FAMILIES } from "@fairlead/base";
import { CommandError, type Runner } from "@fairlead/kernel";
import { nodeAddresses, readKernelState } from "./kernel-state.ts";
import { LISTINGS } from "./listings-call.ts";
import { type RecordedRun, recordingRunner, replayingRunner } from "./recorded-runs.ts";

/** Asks everything that a command may want to know of a kernel, and prints each answer once. */
export async function printListings(runner: Runner, out: (text: string) => void): Promise<void> {
  const reported = new Set<string>();
  const recording = recordingRunner(runner, (run) => {
    const key = JSON.stringify(run.argv);
    if (!reported.has(key)) out(`${JSON.stringify(run)}\n`);
    reported.add(key);
  });
  await nodeAddresses(recording);
  // A family that the host has not got is an answer as well.
  for (const family of IP_FAMILIES) await readKernelState(recording, family).catch(() => undefined);
}

/** A runner that has asked the pod's own `fairlead` for everything at once; the plain one where there is none. */
export async function listedRunner(pod: Runner): Promise<Runner> {
  try {
    const { stdout } = await pod.run(["fairlead", LISTINGS], { maxStdout: 1 << 30 });
    return replayingRunner(stdout.split("\n").flatMap(runIn), pod);
  } catch (error) {
    if (error instanceof CommandError) return pod;
    throw error;
  }
}

function runIn(line: string): readonly RecordedRun[] {
  return line === "" ? [] : [JSON.parse(line)];
}

import { readFile } from "node:fs/promises";

/** A process that is watched. */
export interface Watched {
  readonly pid?: number | undefined;
  kill(signal: "SIGKILL"): boolean;
}

export interface StopWatch {
  /** It was killed because it stood still. */
  readonly killed: boolean;
  /** It has ended. */
  end(): void;
}

/**
 * Kills a process that another program has stopped (SIGSTOP, a debugger that left) and that has not gone on for so
 * long: it would hold the sync, and with the legacy tools the lock, until its time is over, which for large tables is
 * many minutes.
 *
 * @param patience milliseconds
 */
export function watchStopped(child: Watched, patience: number): StopWatch {
  const watch = { killed: false, end: () => clearInterval(timer) };
  let before = false;
  const timer = setInterval(async () => {
    const stopped = await isStopped(child.pid);
    if (stopped && before) {
      watch.killed = true;
      child.kill("SIGKILL");
    }
    before = stopped;
  }, patience / 2);
  timer.unref();
  return watch;
}

/** `/proc/PID/stat`: the state stands behind the name in brackets, T for stopped. */
async function isStopped(pid: number | undefined): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    return stat.startsWith(" T ", stat.lastIndexOf(")") + 1);
  } catch {
    return false;
  }
}

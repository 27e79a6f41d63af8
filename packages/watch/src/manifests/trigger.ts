import type { Clock } from "@fairlead/base";
import { watch } from "chokidar";

/** Says when the files may have changed; what has changed is found by looking. */
export interface Trigger {
  /** Resolves after the next sign of a change, or at once if there was one since the last call, or when aborted. */
  next(signal: AbortSignal): Promise<void>;
  /** A sign from inside. */
  pull(): void;
  close(): Promise<void>;
}

/**
 * Where the kernel's notifications fail (network file systems, links out of the folder): how often to scan all the
 * same.
 */
const SCAN_EVERY = 10_000;

/**
 * Signs come from chokidar and every ten seconds. Its own account of files and events is not used: it does not follow
 * the swapped links of a mounted ConfigMap, and an editor's or an atomic write is several events of one change.
 */
export function fileTrigger(path: string, clock: Clock): Trigger {
  const watcher = watch(path, { ignoreInitial: true, depth: 0 });
  let pulled = false;
  let wake = () => {};
  const pull = () => {
    pulled = true;
    wake();
  };
  let cancel = () => {};
  const scan = () => {
    pull();
    cancel = clock.after(SCAN_EVERY, scan);
  };
  cancel = clock.after(SCAN_EVERY, scan);
  watcher.on("all", pull).on("raw", pull).on("ready", pull).on("error", pull);

  const next = async (signal: AbortSignal) => {
    signal.addEventListener("abort", pull);
    if (!pulled && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
    signal.removeEventListener("abort", pull);
    pulled = false;
  };
  const close = () => {
    cancel();
    return watcher.close();
  };
  return { next, pull, close };
}

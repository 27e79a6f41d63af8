import { watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@fairlead/base";

export interface ConfigFileOptions {
  readonly path: string;
  /** Its text when the agent read it. */
  readonly text: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

/** Milliseconds that a burst of events has to end in: a ConfigMap's swap is several renames. */
const QUIET_MS = 200;

/**
 * Calls `onChange` once when the file's contents differ from `text`. A mounted ConfigMap changes by swapped links
 * alongside the file, so it is the folder that is watched, and contents that are compared. A file that is gone is no
 * change: it may be on its way back.
 */
export function watchConfigFile(options: ConfigFileOptions): void {
  let cancel = () => {};
  let changed = false;
  const compare = async () => {
    const text = await readFile(options.path, "utf8").catch(() => options.text);
    if (changed || text === options.text || options.signal.aborted) return;
    changed = true;
    options.onChange();
  };
  const compareSoon = () => {
    cancel();
    cancel = options.clock.after(QUIET_MS, () => void compare());
  };
  options.signal.addEventListener("abort", () => cancel());
  try {
    const watcher = watch(dirname(options.path), { signal: options.signal, persistent: false }, compareSoon);
    watcher.on("error", options.onError);
  } catch (error) {
    options.onError(error);
  }
  compareSoon();
}

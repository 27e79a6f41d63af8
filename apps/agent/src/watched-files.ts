/** Files that a process was started with: it ends when they change, to be started again with what they say then. */

import { watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, errorChainText } from "@fairlead/base";
import type { ClientConnection } from "@fairlead/config";
import type { Log } from "./log.ts";

/** A file, and what it said when this process read it. */
export interface WatchedFile {
  readonly path: string;
  readonly text: string;
  /** What it says now; default: its text. @throws Error why that is of no use */
  readonly read?: (path: string) => Promise<string>;
}

interface WatchedFileOptions extends WatchedFile {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  /** Called for what is there now and is of no use, which is not a change: it may be on its way. */
  readonly onUnusable?: (error: unknown) => void;
  readonly onError: (error: unknown) => void;
}

/** Milliseconds that a burst of events has to end in: a ConfigMap's swap is several renames. */
const QUIET_MS = 200;

/**
 * Calls `onChange` once when the file says something other than `text`. A mounted ConfigMap changes by swapped links
 * alongside the file, so it is the folder that is watched, and contents that are compared. A file that is gone is no
 * change: it may be on its way back.
 */
export function watchFile(options: WatchedFileOptions): void {
  const { path, text, read = (path) => readFile(path, "utf8"), clock, signal, onUnusable = () => {} } = options;
  let cancel = () => {};
  let changed = false;
  const compare = async () => {
    const now = await read(path).catch((error: unknown) => {
      if (!signal.aborted) onUnusable(error);
      return text;
    });
    if (changed || now === text || signal.aborted) return;
    changed = true;
    options.onChange();
  };
  // One after the other: a slow read of what was there before would be reported after what is there now.
  let compared = Promise.resolve();
  const compareSoon = () => {
    cancel();
    cancel = clock.after(QUIET_MS, () => {
      compared = compared.then(compare);
    });
  };
  signal.addEventListener("abort", () => cancel());
  try {
    const watcher = watch(dirname(path), { signal, persistent: false }, compareSoon);
    watcher.on("error", options.onError);
  } catch (error) {
    options.onError(error);
  }
  compareSoon();
}

/** What the process reaches the API server by; undefined: without a kubeconfig. */
type Client = Pick<ClientConnection, "kubeconfig" | "master" | "allowExecCredentials">;

/**
 * The kubeconfig that is about to be used. What it says is the cluster and the user of its context: the files that
 * these name are read anew for each connection, and other contexts do not matter.
 */
export async function kubeconfigOf(client: Client): Promise<WatchedFile | undefined> {
  const { kubeconfig: path = "" } = client;
  if (path === "") return undefined;
  const { chosenContext, loadConnection, readKubeconfigFile } = await import("@fairlead/watch");
  const textOf = async () => {
    const { cluster, user } = chosenContext(path, await readKubeconfigFile(path));
    return JSON.stringify({ cluster, user });
  };
  const read = async () => {
    await loadConnection(client);
    return textOf();
  };
  // Whether it can be used now shows when it connects.
  return { path, text: await textOf(), read };
}

interface FollowParts {
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
}

/** Ends the process by `fail` when its configuration file or its kubeconfig changes. */
export function followFiles(
  files: { readonly configFile?: WatchedFile | undefined; readonly kubeconfig?: WatchedFile | undefined },
  { clock, log }: FollowParts,
  signal: AbortSignal,
  fail: (reason: string) => void,
): void {
  const follow = (name: string, file: WatchedFile | undefined, onUnusable?: (error: unknown) => void) => {
    if (file === undefined) return;
    watchFile({
      ...file,
      clock,
      signal,
      ...(onUnusable && { onUnusable }),
      onChange: () => fail(`the ${name} changed: ending, to be started again with the new one`),
      onError: (error) =>
        log.warn(`Cannot watch the ${name}; changes need a restart`, { error: errorChainText(error) }),
    });
  };
  follow("configuration file", files.configFile);
  let said = "";
  follow("kubeconfig", files.kubeconfig, (cause) => {
    const error = errorChainText(cause);
    // Other files of the folder change as well.
    if (error !== said) {
      log.warn("The kubeconfig changed and cannot be used; the previous connection stays in effect", { error });
    }
    said = error;
  });
}

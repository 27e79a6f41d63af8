import { type Clock, sleep, systemClock } from "@fairlead/base";
import type { ObjectSource } from "../change.ts";
import type { OnReport } from "../report.ts";
import { resourceSpecs, type Selection } from "../resources.ts";
import { publishersOf, runTogether } from "../subscribe.ts";
import { ManifestFollower } from "./follower.ts";
import { type FileState, type Scan, scan } from "./scan.ts";
import { fileTrigger, type Trigger } from "./trigger.ts";

/** Nodes but the own one are ignored. */
export interface ManifestsSourceOptions extends Selection {
  /**
   * A YAML or JSON file, or a folder of them (*.yaml, *.yml, *.json; not its subfolders, no hidden files). An empty
   * folder is an empty cluster. A path that isn't there yet is waited for: nothing is complete until then. A file that
   * is removed takes its objects with it; when the folder itself vanishes, its objects stay until it is back.
   */
  readonly path: string;
  /** Gets what an operator may want to read of the files. */
  readonly onReport?: OnReport;
  /** For tests. */
  readonly clock?: Clock;
}

/** Writers make several changes in a row: this long after the first sign the files are looked at. */
const DEBOUNCE = 50;
const REPORT_EVERY = 60_000;

/** Follows manifest files as if an API server held them. Does nothing before `run`. */
export function createManifestsSource(options: ManifestsSourceOptions): ObjectSource {
  const { path, clock = systemClock, onReport = () => {} } = options;
  return {
    run: async (subscriptions, signal) => {
      const specs = resourceSpecs(options, subscriptions.others);
      const follower = new ManifestFollower(specs, publishersOf(subscriptions, onReport), onReport);
      const trigger = fileTrigger(path, clock);
      const part = (stop: AbortSignal) => follow(path, follower, trigger, clock, onReport, stop);
      try {
        await runTogether([part], signal);
      } finally {
        await trigger.close();
      }
    },
  };
}

async function follow(
  path: string,
  follower: ManifestFollower,
  trigger: Trigger,
  clock: Clock,
  onReport: OnReport,
  signal: AbortSignal,
): Promise<void> {
  const waiting = waitingReports(path, clock, onReport);
  let wasFile = false;
  while (!signal.aborted) {
    const found = await scan(path, Date.now);
    const files = filesOf(found, wasFile);
    waiting(files === undefined ? { error: errorOf(found), kept: follower.objects } : undefined);
    if (files !== undefined && (await follower.pass(files))) trigger.pull();
    wasFile ||= found.type === "files" && !found.isFolder;
    await trigger.next(signal);
    await sleep(clock, DEBOUNCE, signal);
  }
}

/** undefined: what the files are can't be known now. */
function filesOf(found: Scan, wasFile: boolean): ReadonlyMap<string, FileState> | undefined {
  if (found.type === "files") return found.files;
  return found.type === "noFile" && wasFile ? new Map() : undefined;
}

function errorOf(found: Scan): string {
  return found.type === "files" ? "" : found.error;
}

/** At once and then once a minute, for as long as there is something to wait for. */
function waitingReports(path: string, clock: Clock, onReport: OnReport) {
  let last = Number.NEGATIVE_INFINITY;
  return (problem: { readonly error: string; readonly kept: number } | undefined) => {
    if (problem === undefined) last = Number.NEGATIVE_INFINITY;
    else if (clock.monotonic() - last >= REPORT_EVERY) {
      last = clock.monotonic();
      onReport({ type: "waiting", path, ...problem });
    }
  };
}

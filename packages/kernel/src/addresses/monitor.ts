import { sleep, systemClock, type Timers } from "@fairlead/base";
import type { OpenListening } from "../netlink/listening.ts";
import type { OpenNetlink } from "../netlink/socket.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { WatchOptions } from "./addresses.ts";
import { type AddressChange, isNodeChange, serviceDeviceChange } from "./change.ts";
import { hearChanges } from "./netlink-changes.ts";
import { parseMonitorLine } from "./parse.ts";

export interface MonitorOptions {
  /**
   * How rtnetlink is asked, in the network namespace that the runner runs its processes in. Where it cannot be had, and
   * by default: `ip`.
   */
  readonly open?: OpenNetlink;
  /**
   * How it is listened to, with `open`. Where it cannot be had, and by default: `ip monitor`, which outlives an agent
   * that is killed until the next change.
   */
  readonly listen?: OpenListening;
  /** Timers of the pauses; default: those of the process. */
  readonly timers?: Timers;
  /** Milliseconds until a monitor that ended is started again, doubled up to the second. Default 1,000 to 60,000. */
  readonly restartMs?: readonly [first: number, longest: number];
  /** Told each time that the monitor ended. */
  readonly onProblem?: (error: unknown) => void;
}

export interface Monitored {
  readonly signal: AbortSignal;
  /** Called whenever the monitor has (re)started, or said something of the node's addresses. */
  readonly changed: () => void;
  readonly onServiceDevice: WatchOptions["onServiceDevice"];
}

/** A monitor surely listens so long after its start; at the agent's, much else is done meanwhile. */
const LISTENS_MS = 1_000;

/** Reports changes until the signal aborts. */
export async function keepMonitoring(runner: Runner, options: MonitorOptions, monitored: Monitored): Promise<void> {
  const { signal, changed, onServiceDevice } = monitored;
  const { timers = systemClock, restartMs = [1_000, 60_000], onProblem = () => {} } = options;
  let [pause, longest] = restartMs;
  while (!signal.aborted) {
    try {
      const changes = await openChanges(runner, options, monitored);
      // `ip` does not say when it has begun to listen: what changed until then is found by looking once more.
      timers.after(LISTENS_MS, changed);
      for await (const change of changes) {
        pause = restartMs[0];
        if (change === undefined || isNodeChange(change)) changed();
        const ofDevice = change && serviceDeviceChange(change);
        if (ofDevice !== undefined) onServiceDevice?.(ofDevice);
      }
      if (!signal.aborted) throw new Error("ip monitor ended");
    } catch (error) {
      if (signal.aborted) return;
      onProblem(error);
    }
    await sleep(timers, pause, signal);
    pause = Math.min(pause * 2, longest);
  }
}

/** What is told from now on; undefined: anything may have changed. */
async function openChanges(
  runner: Runner,
  { open, listen, timers = systemClock }: MonitorOptions,
  { signal, onServiceDevice }: Monitored,
): Promise<AsyncIterable<AddressChange | undefined>> {
  const heard = open && listen && (await hearChanges({ open, listen }, timers, signal).catch(() => undefined));
  // That the device itself goes is said of links only.
  return heard ?? monitorLines(runner, onServiceDevice === undefined ? ["address"] : ["link", "address"], signal);
}

async function* monitorLines(
  runner: Runner,
  kinds: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<AddressChange, void, void> {
  for await (const text of lines(runner.stream(["ip", "-oneline", "monitor", ...kinds], { timeoutMs: 0, signal }))) {
    const change = parseMonitorLine(text);
    if (change !== undefined) yield change;
  }
}

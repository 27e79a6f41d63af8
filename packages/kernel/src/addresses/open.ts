import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import { sleep, systemTimers, type Timers } from "../timers.ts";
import type { NodeAddress, NodeAddresses } from "./addresses.ts";
import { isNodeChange, parseAddresses } from "./parse.ts";
import { Wake } from "./wake.ts";

export interface NodeAddressesOptions {
  readonly timers?: Timers;
  /** Milliseconds to wait for more changes after one. Default 200. */
  readonly settleMs?: number;
  /** Milliseconds until a monitor that ended is started again, doubled up to the second. Default 1,000 to 60,000. */
  readonly restartMs?: readonly [first: number, longest: number];
  /** Told each time that the monitor ended or a listing failed. */
  readonly onProblem?: (error: unknown) => void;
}

/**
 * The addresses as `ip` knows them. `ip monitor` says that something changed; what there is now is always listed anew, so
 * that a line that got lost or that this version of `ip` words differently does no harm.
 */
export function createNodeAddresses(runner: Runner, options: NodeAddressesOptions = {}): NodeAddresses {
  const list = async () => parseAddresses((await runner.run(["ip", "-json", "address"])).stdout);
  return { list, watch: ({ signal }) => watch(runner, list, options, signal) };
}

async function* watch(
  runner: Runner,
  list: () => Promise<readonly NodeAddress[]>,
  options: NodeAddressesOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly NodeAddress[], void, void> {
  const { timers = systemTimers, settleMs = 200, onProblem = () => {} } = options;
  const wake = new Wake(signal);
  const leave = new AbortController();
  const until = AbortSignal.any([signal, leave.signal]);
  const monitor = keepMonitoring(runner, options, until, () => wake.up());
  let last = "";
  try {
    while (!signal.aborted) {
      const addresses = await list().catch((error: unknown) => {
        onProblem(error);
        timers.after(options.restartMs?.[0] ?? 1_000, () => wake.up());
      });
      const text = addresses === undefined ? last : JSON.stringify(addresses);
      if (addresses !== undefined && text !== last) yield addresses;
      last = text;
      await wake.wait();
      await sleep(timers, settleMs, signal);
      wake.forget();
    }
  } finally {
    leave.abort();
    await monitor;
  }
}

/** Runs the monitor until the signal aborts; whenever it has (re)started or said something, `changed` is called. */
async function keepMonitoring(
  runner: Runner,
  options: NodeAddressesOptions,
  signal: AbortSignal,
  changed: () => void,
): Promise<void> {
  const { timers = systemTimers, settleMs = 200, restartMs = [1_000, 60_000], onProblem = () => {} } = options;
  let [pause, longest] = restartMs;
  while (!signal.aborted) {
    try {
      // It does not say when it has begun to listen: what changed until then is found by looking once more.
      timers.after(settleMs, changed);
      for await (const line of lines(
        runner.stream(["ip", "-oneline", "monitor", "address"], { timeoutMs: 0, signal }),
      )) {
        pause = restartMs[0];
        if (isNodeChange(line)) changed();
      }
      throw new Error("ip monitor ended");
    } catch (error) {
      if (signal.aborted) return;
      onProblem(error);
    }
    await sleep(timers, pause, signal);
    pause = Math.min(pause * 2, longest);
  }
}

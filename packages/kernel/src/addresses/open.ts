import { networkInterfaces } from "node:os";
import { sleep, systemClock, type Timers } from "@fairlead/base";
import type { OpenNetlink } from "../netlink/socket.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { NodeAddress, NodeAddresses, WatchOptions } from "./addresses.ts";
import { interfaceAddresses } from "./interfaces.ts";
import { readNodeAddresses } from "./netlink.ts";
import { isNodeChange, parseAddresses, parseMonitorLine, serviceDeviceChange } from "./parse.ts";
import { Wake } from "./wake.ts";

export interface NodeAddressesOptions {
  /**
   * How rtnetlink is reached for listings, in the network namespace that the runner runs its processes in. Where it
   * cannot be had, and by default: `ip`.
   */
  readonly open?: OpenNetlink;
  readonly timers?: Timers;
  /** Milliseconds to wait for more changes after one. Default 200. */
  readonly settleMs?: number;
  /** Milliseconds until a monitor that ended is started again, doubled up to the second. Default 1,000 to 60,000. */
  readonly restartMs?: readonly [first: number, longest: number];
  /** Where addresses come from while `ip` has never given any. Default: the C library, with what is up. */
  readonly fallback?: () => readonly NodeAddress[];
  /** Told each time that the monitor ended or a listing failed. */
  readonly onProblem?: (error: unknown) => void;
}

/** Failed first listings in a row after which the fallback has to do: one may fail at a busy start. */
const FAILURES = 3;
/** Milliseconds that a listing may take. */
const LISTING_MS = 10_000;

/**
 * The addresses as `ip` or the kernel lists them. `ip monitor` says that something changed; what there is now is always
 * listed anew, so that a line that got lost or that this version of `ip` words differently does no harm.
 */
export function createNodeAddresses(runner: Runner, options: NodeAddressesOptions = {}): NodeAddresses {
  const list = async () => {
    const socket = await options.open?.().catch(() => undefined);
    return socket === undefined ? listedByTool(runner) : readNodeAddresses(socket).finally(() => socket.close());
  };
  return { list, watch: (wanted) => watch(runner, list, options, wanted) };
}

async function listedByTool(runner: Runner): Promise<readonly NodeAddress[]> {
  return parseAddresses((await runner.run(["ip", "-json", "address"], { timeoutMs: LISTING_MS })).stdout);
}

async function* watch(
  runner: Runner,
  list: () => Promise<readonly NodeAddress[]>,
  options: NodeAddressesOptions,
  { signal, onServiceDevice }: WatchOptions,
): AsyncGenerator<readonly NodeAddress[], void, void> {
  const { timers = systemClock, settleMs = 200, onProblem = () => {} } = options;
  const wake = new Wake(signal);
  const leave = new AbortController();
  const until = AbortSignal.any([signal, leave.signal]);
  const watched = { signal: until, changed: () => wake.up(), onServiceDevice };
  const monitor = keepMonitoring(runner, options, watched);
  const { fallback = () => interfaceAddresses(networkInterfaces()) } = options;
  let last = "";
  let failures = 0;
  try {
    while (!signal.aborted) {
      const addresses = await list().catch((error: unknown) => {
        onProblem(error);
        timers.after(options.restartMs?.[0] ?? 1_000, () => wake.up());
        failures++;
        return last === "" && failures >= FAILURES ? fallback() : undefined;
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

interface Watched {
  readonly signal: AbortSignal;
  /** Called whenever the monitor has (re)started, or said something of the node's addresses. */
  readonly changed: () => void;
  readonly onServiceDevice: WatchOptions["onServiceDevice"];
}

/** A monitor surely listens so long after its start; at the agent's, much else is done meanwhile. */
const LISTENS_MS = 1_000;

/** Runs the monitor until the signal aborts. */
async function keepMonitoring(
  runner: Runner,
  options: NodeAddressesOptions,
  { signal, changed, onServiceDevice }: Watched,
): Promise<void> {
  const { timers = systemClock, restartMs = [1_000, 60_000], onProblem = () => {} } = options;
  let [pause, longest] = restartMs;
  // That the device itself goes is said of links only.
  const kinds = onServiceDevice === undefined ? ["address"] : ["link", "address"];
  while (!signal.aborted) {
    try {
      // It does not say when it has begun to listen: what changed until then is found by looking once more.
      timers.after(LISTENS_MS, changed);
      for await (const text of lines(
        runner.stream(["ip", "-oneline", "monitor", ...kinds], { timeoutMs: 0, signal }),
      )) {
        pause = restartMs[0];
        const line = parseMonitorLine(text);
        if (line === undefined) continue;
        if (isNodeChange(line)) changed();
        const change = serviceDeviceChange(line);
        if (change !== undefined) onServiceDevice?.(change);
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

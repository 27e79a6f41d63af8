import { networkInterfaces } from "node:os";
import { sleep, systemClock } from "@fairlead/base";
import type { Runner } from "../runner/runner.ts";
import type { NodeAddress, NodeAddresses, WatchOptions } from "./addresses.ts";
import { interfaceAddresses } from "./interfaces.ts";
import { keepMonitoring, type MonitorOptions } from "./monitor.ts";
import { readNodeAddresses } from "./netlink.ts";
import { parseAddresses } from "./parse.ts";
import { Wake } from "./wake.ts";

/** How the node's addresses are read and watched. */
export interface NodeAddressesOptions extends MonitorOptions {
  /** Milliseconds to wait for more changes after one. Default 200. */
  readonly settleMs?: number;
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
 * The addresses as `ip` or the kernel lists them. The kernel, or `ip monitor`, says that something changed; what there
 * is now is always listed anew, so that what got lost or what this version of `ip` words differently does no harm.
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

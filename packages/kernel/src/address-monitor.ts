/** Follows a node's addresses: by netlink, and where that cannot be had by asking `ip` from time to time. */

import { sleep, systemClock, type Timers } from "@fairlead/base";
import {
  hearChanges,
  IPVS_DEVICE,
  isNodeChange,
  type NodeAddress,
  type NodeAddresses,
  readNodeAddresses,
  serviceDeviceChange,
  type WatchOptions,
} from "./addresses.ts";
import { parseIpJson } from "./ip-json.ts";
import type { OpenListening } from "./netlink/listening.ts";
import type { OpenNetlink } from "./netlink/socket.ts";
import type { Runner } from "./runner.ts";

/** How the node's addresses are read and watched. */
export interface NodeAddressesOptions {
  /**
   * How rtnetlink is asked, in the network namespace that the runner runs its processes in. Where it cannot be had, and
   * by default: `ip`.
   */
  readonly open?: OpenNetlink;
  /** How it is listened to, with `open`. Where it cannot be had, and by default, addresses are listed every 5 s. */
  readonly listen?: OpenListening;
  /** Timers of the pauses; default: those of the process. */
  readonly timers?: Timers;
  /** Milliseconds to wait for more changes after one. Default 200. */
  readonly settleMs?: number;
  /** Called each time that listening ends or a listing fails. */
  readonly onProblem?: (error: unknown) => void;
}

/**
 * The addresses as `ip` or the kernel lists them. The kernel says that something changed; what there is now is always
 * listed anew, so that what got lost does no harm.
 */
export function createNodeAddresses(runner: Runner, options: NodeAddressesOptions = {}): NodeAddresses {
  const list = async () => {
    const socket = await options.open?.().catch(() => undefined);
    return socket === undefined ? listedByTool(runner) : readNodeAddresses(socket).finally(() => socket.close());
  };
  return { list, watch: (wanted) => watch(list, options, wanted) };
}

/**
 * What `ip -json address` prints.
 *
 * @throws SyntaxError when it is not JSON
 */
export function parseAddresses(json: string): readonly NodeAddress[] {
  const links = parseIpJson(json);
  return (Array.isArray(links) ? links : []).flatMap(addressesOf);
}

/** Lets one waiter go on when it is woken or the signal aborts; remembers a wake that comes before the wait. */
export class Wake {
  readonly #signal: AbortSignal;
  #woken = false;
  #resolve: () => void = () => {};

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  up(): void {
    this.#woken = true;
    this.#resolve();
  }

  forget(): void {
    this.#woken = false;
  }

  wait(): Promise<void> {
    if (this.#woken || this.#signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resolve = () => {
        this.#signal.removeEventListener("abort", this.#resolve);
        resolve();
      };
      this.#signal.addEventListener("abort", this.#resolve);
    });
  }
}

/** Milliseconds that a listing may take. */
const LISTING_MS = 10_000;

async function listedByTool(runner: Runner): Promise<readonly NodeAddress[]> {
  return parseAddresses((await runner.run(["ip", "-json", "address"], { timeoutMs: LISTING_MS })).stdout);
}

/** Milliseconds until what failed is tried again. */
const RETRY_MS = 1_000;
/** Milliseconds between two listings where nothing says that something changed. */
const LOOK_MS = 5_000;

async function* watch(
  list: () => Promise<readonly NodeAddress[]>,
  options: NodeAddressesOptions,
  { signal, onServiceDevice }: WatchOptions,
): AsyncGenerator<readonly NodeAddress[], void, void> {
  const { timers = systemClock, settleMs = 200, onProblem = () => {} } = options;
  const wake = new Wake(signal);
  const leave = new AbortController();
  const listening = keepListening({ ...options, timers, onProblem }, () => wake.up(), {
    signal: AbortSignal.any([signal, leave.signal]),
    ...(onServiceDevice && { onServiceDevice }),
  });
  let last = "";
  try {
    while (!signal.aborted) {
      const addresses = await list().catch((error: unknown) => {
        onProblem(error);
        timers.after(RETRY_MS, () => wake.up());
        return undefined;
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
    await listening;
  }
}

/** Reports changes until the signal aborts. */
async function keepListening(
  {
    open,
    listen,
    timers,
    onProblem,
  }: NodeAddressesOptions & { readonly timers: Timers; onProblem(error: unknown): void },
  changed: () => void,
  { signal, onServiceDevice }: WatchOptions,
): Promise<void> {
  while (!signal.aborted) {
    const changes = open && listen && (await hearChanges({ open, listen }, timers, signal).catch(() => undefined));
    if (changes === undefined) await sleep(timers, LOOK_MS, signal);
    // What changed before it listened is found by looking once more.
    changed();
    try {
      for await (const change of changes ?? []) {
        if (change === undefined || isNodeChange(change)) changed();
        const ofDevice = change && serviceDeviceChange(change);
        if (ofDevice !== undefined) onServiceDevice?.(ofDevice);
      }
    } catch (error) {
      onProblem(error);
      await sleep(timers, RETRY_MS, signal);
    }
  }
}

interface Link {
  readonly ifname?: unknown;
  readonly flags?: unknown;
  readonly addr_info?: unknown;
}

interface AddressInfo {
  readonly family?: unknown;
  readonly local?: unknown;
  readonly prefixlen?: unknown;
  readonly scope?: unknown;
}

function addressesOf(link: Link): NodeAddress[] {
  const { ifname, flags, addr_info: infos } = link;
  if (typeof ifname !== "string" || ifname === IPVS_DEVICE || !Array.isArray(infos)) return [];
  const up = Array.isArray(flags) && flags.includes("UP");
  return infos.flatMap((info: AddressInfo) => {
    const { family, local, prefixlen, scope } = info;
    // A filter of `ip` leaves empty objects behind.
    if (typeof local !== "string" || typeof prefixlen !== "number" || typeof scope !== "string") return [];
    if (family !== "inet" && family !== "inet6") return [];
    const name = family === "inet" ? "IPv4" : "IPv6";
    return [{ family: name, address: local, prefixLength: prefixlen, interface: ifname, scope, up }];
  });
}

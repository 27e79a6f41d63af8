/** Follows a node's addresses: by netlink where that works, else by `ip monitor` or by asking from time to time. */

import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { sleep, systemClock, type Timers } from "@fairlead/base";
import {
  type AddressChange,
  hearChanges,
  IPVS_DEVICE,
  isNodeChange,
  type NodeAddress,
  type NodeAddresses,
  readNodeAddresses,
  serviceDeviceChange,
  type WatchOptions,
} from "./addresses.ts";
import type { OpenListening } from "./netlink/listening.ts";
import type { OpenNetlink } from "./netlink/socket.ts";
import { lines, type Runner } from "./runner.ts";

interface MonitorOptions {
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

/** How the node's addresses are read and watched. */
export interface NodeAddressesOptions extends MonitorOptions {
  /** Milliseconds to wait for more changes after one. Default 200. */
  readonly settleMs?: number;
  /** Where addresses come from while `ip` has never given any. Default: the C library, with what is up. */
  readonly fallback?: () => readonly NodeAddress[];
  /** Told each time that the monitor ended or a listing failed. */
  readonly onProblem?: (error: unknown) => void;
}

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

/**
 * What `ip -json address` prints.
 *
 * @throws SyntaxError when it is not JSON
 */
export function parseAddresses(json: string): readonly NodeAddress[] {
  const links: unknown = json.trim() === "" ? [] : JSON.parse(json);
  return (Array.isArray(links) ? links : []).flatMap(addressesOf);
}

const LINE = /^(?<deleted>Deleted )?\d+: (?<device>[^\s:@]+)(?:[:@]| +inet6? (?<address>[0-9a-f.:]+))/;

/**
 * What a line of `ip -oneline monitor link address` is about: `Deleted 3: eth0    inet 192.0.2.1/24 …`, `3: eth0: <UP>
 * …`. Undefined for what else `ip` prints.
 */
export function parseMonitorLine(line: string): AddressChange | undefined {
  const { deleted, device, address } = LINE.exec(line)?.groups ?? {};
  if (device === undefined) return undefined;
  return { device, gone: deleted !== undefined, ...(address !== undefined && { address }) };
}

/** What `os.networkInterfaces()` gives. */
type Interfaces = Readonly<Partial<Record<string, readonly NetworkInterfaceInfo[]>>>;

/** The addresses of the interfaces that are up, as the C library knows them: no process, but none of what is down. */
export function interfaceAddresses(interfaces: Interfaces): readonly NodeAddress[] {
  return Object.entries(interfaces).flatMap(([name, infos = []]) =>
    name === IPVS_DEVICE ? [] : infos.map((info) => addressOf(name, info)),
  );
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

  /** Forgets a wake that has come. */
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

/** Failed first listings in a row after which the fallback has to do: one may fail at a busy start. */
const FAILURES = 3;
/** Milliseconds that a listing may take. */
const LISTING_MS = 10_000;

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

interface Monitored {
  readonly signal: AbortSignal;
  /** Called whenever the monitor has (re)started, or said something of the node's addresses. */
  readonly changed: () => void;
  readonly onServiceDevice: WatchOptions["onServiceDevice"];
}

/** A monitor surely listens so long after its start; at the agent's, much else is done meanwhile. */
const LISTENS_MS = 1_000;

/** Reports changes until the signal aborts. */
async function keepMonitoring(runner: Runner, options: MonitorOptions, monitored: Monitored): Promise<void> {
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

function addressOf(name: string, { address, family, cidr, internal }: NetworkInterfaceInfo): NodeAddress {
  const whole = family === "IPv4" ? 32 : 128;
  return {
    family,
    address,
    prefixLength: Number(cidr?.split("/")[1] ?? whole),
    interface: name,
    scope: internal ? "host" : LINK_LOCAL.test(address) ? "link" : "global",
    up: true,
  };
}

/** fe80::/10 */
const LINK_LOCAL = /^fe[89ab]/i;

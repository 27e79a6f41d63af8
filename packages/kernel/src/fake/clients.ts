/** The smaller clients in memory: addresses, conntrack, devices, modules, nfacct, routes and sysctls. */

import { Wake } from "../address-monitor.ts";
import {
  IPVS_DEVICE,
  type NodeAddress,
  type NodeAddresses,
  type ServiceDeviceChange,
  type WatchOptions,
} from "../addresses.ts";
import type { Choose, Connection, Conntrack, ConntrackFlow, Tracking } from "../conntrack/flows.ts";
import type { DeviceFollower, NetworkDevice } from "../devices.ts";
import type { IPFamily, Protocol } from "../family.ts";
import type { ModuleResult, Modules } from "../modules.ts";
import type { Nfacct, NfacctCount, NfacctResult } from "../nfacct.ts";
import type { MarkRule, RouteEntry, Routing, RoutingCommand, RoutingWatchOptions, TableRoute } from "../routes.ts";
import type { Argv } from "../runner.ts";
import type { Sysctl, SysctlResult } from "../sysctl.ts";
import { Faults, killed, singleStep } from "./faults.ts";

/** Addresses in memory. Watchers get each change at once. */
export class FakeNodeAddresses implements NodeAddresses {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  #addresses: readonly NodeAddress[];
  readonly #watchers = new Set<Wake>();
  readonly #listeners = new Set<(change: ServiceDeviceChange) => void>();

  constructor(addresses: readonly NodeAddress[] = [], faults = new Faults()) {
    this.#addresses = addresses;
    this.faults = faults;
  }

  /** Adds addresses, as if an interface had got them. */
  add(...addresses: readonly NodeAddress[]): void {
    this.#set([...this.#addresses, ...addresses]);
  }

  /** Takes addresses away, by their text. */
  remove(...addresses: readonly string[]): void {
    this.#set(this.#addresses.filter(({ address }) => !addresses.includes(address)));
  }

  /** Reports to watchers that kube-ipvs0 has changed. */
  notify(change: ServiceDeviceChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  list(): Promise<readonly NodeAddress[]> {
    return singleStep(this.faults, ["ip", "-json", "address"], () => this.#ofNode());
  }

  async *watch({
    signal,
    onServiceDevice = () => {},
  }: WatchOptions): AsyncGenerator<readonly NodeAddress[], void, void> {
    const wake = new Wake(signal);
    this.#watchers.add(wake);
    this.#listeners.add(onServiceDevice);
    let last: string | undefined;
    try {
      while (!signal.aborted) {
        wake.forget();
        const addresses = this.#ofNode();
        const text = JSON.stringify(addresses);
        if (text !== last) yield addresses;
        last = text;
        await wake.wait();
      }
    } finally {
      this.#watchers.delete(wake);
      this.#listeners.delete(onServiceDevice);
    }
  }

  #ofNode(): readonly NodeAddress[] {
    return this.#addresses.filter((address) => address.interface !== IPVS_DEVICE);
  }

  #set(addresses: readonly NodeAddress[]): void {
    this.#addresses = addresses;
    for (const wake of this.#watchers) wake.up();
  }
}

/** A connection tracking table in memory. Each `track` is one client's entry. */
export class FakeConntrack implements Conntrack {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  #entries: ConntrackFlow[] = [];

  constructor(faults = new Faults()) {
    this.faults = faults;
  }

  /** Entries that are left, in the order of their making. */
  get entries(): readonly ConntrackFlow[] {
    return this.#entries;
  }

  /** Makes entries, as traffic would. */
  track(...flows: readonly ConntrackFlow[]): void {
    // Each is an entry of its own, however alike they are.
    this.#entries.push(...flows.map((flow) => ({ ...flow })));
  }

  /** Two steps, as two processes: reading, and deleting where something was picked. Killed half way, some are left. */
  async sweep(family: IPFamily, protocol: Protocol, choose: Choose): Promise<number> {
    const selection = ["-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
    const read = await singleStep(this.faults, ["conntrack", "-L", ...selection], () =>
      this.#entries.filter((entry) => entry.family === family && entry.protocol === protocol),
    );
    const chosen = [...choose(read)];
    if (chosen.length > 0) await this.#delete(chosen);
    return chosen.length;
  }

  async #delete(flows: readonly ConntrackFlow[]): Promise<void> {
    const argv: Argv = ["conntrack", "-R", "commands"];
    const fault = await this.faults.enter(argv);
    const gone = new Set(fault?.kind === "kill" ? flows.slice(0, fault.transactions) : flows);
    this.#entries = this.#entries.filter((entry) => !gone.has(entry));
    if (fault !== undefined) throw killed(argv);
  }
}

/** Tracked connections in memory, which only their owner changes. */
export class FakeTracking implements Pick<Tracking, "list"> {
  /** What a listing gives. */
  connections: Iterable<Connection> = [];
  /** What a listing fails with after its last connection; undefined: it ends well. */
  failure: Error | undefined;
  /** Listings that have begun. */
  listings = 0;

  async *list(): AsyncGenerator<Connection, void, void> {
    this.listings += 1;
    yield* this.connections;
    if (this.failure !== undefined) throw this.failure;
  }
}

/** Devices in memory, for any number of followers. */
export class FakeDevices implements DeviceFollower {
  readonly #devices = new Map<string, NetworkDevice>();
  readonly #waiting = new Set<() => void>();
  #index = 1;

  /** A device comes. */
  add(name: string, more: Omit<NetworkDevice, "name" | "index"> = {}): NetworkDevice {
    const device = { name, index: ++this.#index, ...more };
    this.#devices.set(name, device);
    this.#report();
    return device;
  }

  /** A device goes. */
  delete(name: string): void {
    this.#devices.delete(name);
    this.#report();
  }

  /** A device gets another name. */
  rename(name: string, to: string): void {
    const device = this.#devices.get(name);
    if (device === undefined) return;
    this.#devices.delete(name);
    this.#devices.set(to, { ...device, name: to });
    this.#report();
  }

  async *follow(signal: AbortSignal): AsyncGenerator<readonly NetworkDevice[], void, void> {
    while (!signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      yield [...this.#devices.values()];
      await promise;
      this.#waiting.delete(resolve);
    }
  }

  #report(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Kernel modules in memory. */
export class FakeModules implements Modules {
  readonly #loaded: Set<string>;
  readonly #loadable: ReadonlySet<string>;

  /** @param loadable those that `load` finds alongside the ones that are there from the start */
  constructor(loaded: Iterable<string> = [], loadable: Iterable<string> = []) {
    this.#loaded = new Set(loaded);
    this.#loadable = new Set(loadable);
  }

  async load(name: string): Promise<ModuleResult> {
    if (this.#loaded.has(name)) return { ok: true };
    if (!this.#loadable.has(name)) return { ok: false, reason: `kernel module ${name} is missing: not found` };
    this.#loaded.add(name);
    return { ok: true };
  }
}

/** The kernel that the fake stands for. */
export interface FakeNfacctOptions {
  /** Shared with other fakes; default: its own, without any fault. */
  readonly faults?: Faults;
  /** False: a kernel without nfnetlink_acct. Default true. */
  readonly supported?: boolean;
}

/** Named counters in memory. Given to a `FakeIptables`, rules may name those that are here and no others. */
export class FakeNfacct implements Nfacct {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly #supported: boolean;
  readonly #counts = new Map<string, NfacctCount>();

  constructor(options: FakeNfacctOptions = {}) {
    this.faults = options.faults ?? new Faults();
    this.#supported = options.supported ?? true;
  }

  /** Whether there is a counter of this name. */
  has(name: string): boolean {
    return this.#counts.has(name);
  }

  /**
   * Counts packets, as a rule that names the counter would.
   *
   * @throws Error for a counter that does not exist
   */
  count(name: string, packets: number, bytes: number): void {
    const before = this.#counts.get(name);
    if (before === undefined) throw new Error(`no nfacct object ${name}`);
    this.#counts.set(name, { packets: before.packets + packets, bytes: before.bytes + bytes });
  }

  ensure(name: string): Promise<NfacctResult> {
    return singleStep(this.faults, ["nfacct", "add", name], () => {
      if (!this.#supported)
        return { ok: false, reason: "nfacct: Operation not supported; the kernel may lack nfnetlink_acct" };
      if (!this.has(name)) this.#counts.set(name, { packets: 0, bytes: 0 });
      return { ok: true };
    });
  }

  read(name: string): Promise<NfacctCount | undefined> {
    return singleStep(this.faults, ["nfacct", "get", name], () => this.#counts.get(name));
  }
}

interface FamilyRouting {
  main: readonly RouteEntry[];
  own: TableRoute[];
  rules: MarkRule[];
}

export class FakeRouting implements Routing {
  /** What there is, by family. */
  readonly families: Readonly<Record<IPFamily, FamilyRouting>> = {
    IPv4: { main: [], own: [], rules: [] },
    IPv6: { main: [], own: [], rules: [] },
  };
  /** Commands that were carried out, in order. */
  readonly written: RoutingCommand[] = [];
  /** Families in which nothing can be written. */
  readonly refusing = new Set<IPFamily>();
  #changed = Promise.withResolvers<void>();

  async read(family: IPFamily) {
    const { main, own, rules } = this.families[family];
    return { main: [...main], own: [...own], rules: [...rules] };
  }

  async write(family: IPFamily, commands: readonly RoutingCommand[]): Promise<void> {
    if (this.refusing.has(family)) throw new Error(`ip refuses routes of ${family}`);
    for (const command of commands) apply(this.families[family], command);
    this.written.push(...commands);
  }

  /** Another program changes the routes; with an interface that goes its routes go, those of Fairlead among them. */
  change(family: IPFamily, main: readonly RouteEntry[]): void {
    const names = new Set(main.map((route) => route.interface));
    const there = this.families[family];
    there.main = main;
    there.own = there.own.filter((route) => names.has(route.interface));
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** A step for each `change`. */
  async *watch({ signal }: RoutingWatchOptions): AsyncGenerator<void, void, void> {
    const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    while (!signal.aborted) {
      await Promise.race([this.#changed.promise, ended]);
      if (!signal.aborted) yield;
    }
  }
}

/** Kernel settings in memory. Keys that it was not given do not exist; while `readOnly`, nothing may be written. */
export class FakeSysctl implements Sysctl {
  /** While true each write fails, as in a container. */
  readOnly = false;
  readonly #values: Map<string, string>;

  constructor(values: Readonly<Record<string, string | number>> = {}) {
    this.#values = new Map(Object.entries(values).map(([key, value]) => [key, String(value)]));
  }

  async read(key: string): Promise<string | undefined> {
    return this.#values.get(key);
  }

  async set(key: string, wanted: string | number): Promise<SysctlResult> {
    const [before, value] = [this.#values.get(key), String(wanted)];
    if (before === undefined) return { outcome: "missing", reason: `sysctl ${key} does not exist` };
    if (before === value) return { outcome: "kept", value: before };
    if (this.readOnly) {
      return { outcome: "refused", reason: `sysctl ${key} cannot be changed (/proc/sys is read-only)` };
    }
    this.#values.set(key, value);
    return { outcome: "changed", before, value };
  }
}

function apply(to: FamilyRouting, command: RoutingCommand): void {
  switch (command.kind) {
    case "set-route":
      to.own = [...to.own.filter((one) => !isSame(one, command.route)), command.route];
      return;
    case "delete-route":
      to.own = to.own.filter((one) => !isSame(one, command.route));
      return;
    case "add-rule":
      to.rules = [...to.rules, command.rule];
      return;
    case "delete-rule":
      to.rules = to.rules.filter((one) => JSON.stringify(one) !== JSON.stringify(command.rule));
      return;
    default:
      command satisfies never;
  }
}

function isSame(a: TableRoute, b: TableRoute): boolean {
  return a.destination === b.destination && a.table === b.table && a.metric === b.metric;
}

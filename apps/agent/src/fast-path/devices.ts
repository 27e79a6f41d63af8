import { chooseDevices, type Devices } from "@fairlead/backend-nftables";
import { errorChainText, sleep, type Timers } from "@fairlead/base";
import type { FastPathSettings } from "@fairlead/config";
import type { DeviceFollower, NetworkDevice, Sysctl } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";

export interface FastPathDevicesParts {
  /** nftables.fastPath.devices */
  readonly wanted: FastPathSettings["devices"];
  /** Canonical CIDRs of this cluster's pods, and of excluded networks. */
  readonly pods: readonly string[];
  readonly excluded: readonly string[];
  readonly follower: DeviceFollower;
  readonly sysctl: Pick<Sysctl, "read">;
  readonly timers: Timers;
  readonly log: Log;
}

/** Whether bridged packets pass through the rules of a family. */
const BRIDGE_FILTERS = ["net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"];
/** Milliseconds until following is tried again after an error. */
const RESTART_MS = 1_000;

/** The devices of the fast path, as they come and go. */
export class FastPathDevices {
  readonly #parts: FastPathDevicesParts;
  #devices: Devices = new Map();
  /** Of all devices, by the kernel's number. */
  #names: ReadonlyMap<number, string> = new Map();
  /** Reported as left out. */
  #refused: ReadonlyMap<string, string> = new Map();

  constructor(parts: FastPathDevicesParts) {
    this.#parts = parts;
  }

  get devices(): Devices {
    return this.#devices;
  }

  nameOf(index: number): string | undefined {
    return this.#names.get(index);
  }

  /**
   * Follows them until the signal aborts.
   *
   * @param update called after each change; one that fails is logged
   */
  async follow(update: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { follower, timers, log, wanted, excluded } = this.#parts;
    const networks = wanted === "auto" || excluded.length > 0;
    while (!signal.aborted) {
      try {
        for await (const all of follower.follow(signal, { networks })) if (await this.#take(all)) await update();
      } catch (error) {
        log.warn("Cannot follow network devices; new devices have no fast path, retrying", {
          error: errorChainText(error),
        });
        await sleep(timers, RESTART_MS, signal);
      }
    }
  }

  /** @returns whether the chosen ones changed */
  async #take(all: readonly NetworkDevice[]): Promise<boolean> {
    const { wanted, pods, excluded, sysctl, log } = this.#parts;
    const filters = await Promise.all(BRIDGE_FILTERS.map((key) => sysctl.read(key)));
    const bridgeFilter = filters.some((value) => value !== undefined && value !== "0");
    const { devices, refused } = chooseDevices(wanted, all, { bridgeFilter, pods, excluded });
    for (const [device, reason] of refused) {
      if (this.#refused.get(device) === reason) continue;
      log.warn("Device left out of the fast path; its packets meet all rules", { device, reason });
    }
    this.#refused = refused;
    this.#names = new Map(all.map(({ name, index }) => [index, name]));
    const same = sameDevices(devices, this.#devices);
    this.#devices = devices;
    return !same;
  }
}

function sameDevices(a: Devices, b: Devices): boolean {
  return a.size === b.size && [...a].every(([name, index]) => b.get(name) === index);
}

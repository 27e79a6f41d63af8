import type { DeviceFollower, NetworkDevice } from "../links/devices.ts";

/** Devices in memory, whoever follows them. */
export class FakeDevices implements DeviceFollower {
  readonly #devices = new Map<string, NetworkDevice>();
  readonly #waiting = new Set<() => void>();
  #index = 1;

  /** A device comes. */
  add(name: string, more: Omit<NetworkDevice, "name" | "index"> = {}): NetworkDevice {
    const device = { name, index: ++this.#index, ...more };
    this.#devices.set(name, device);
    this.#tell();
    return device;
  }

  /** A device goes. */
  delete(name: string): void {
    this.#devices.delete(name);
    this.#tell();
  }

  /** A device gets another name. */
  rename(name: string, to: string): void {
    const device = this.#devices.get(name);
    if (device === undefined) return;
    this.#devices.delete(name);
    this.#devices.set(to, { ...device, name: to });
    this.#tell();
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

  #tell(): void {
    for (const wake of this.#waiting) wake();
  }
}

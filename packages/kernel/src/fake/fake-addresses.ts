import type { NodeAddress, NodeAddresses, ServiceDeviceChange, WatchOptions } from "../addresses/addresses.ts";
import { IPVS_DEVICE } from "../addresses/change.ts";
import { Wake } from "../addresses/wake.ts";
import { Faults, singleStep } from "./faults.ts";

/** Addresses in memory. What watches them is told of each change at once. */
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

  /** Tells those who watch that kube-ipvs0 has changed. */
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

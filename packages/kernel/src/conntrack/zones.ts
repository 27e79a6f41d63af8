import { NetlinkError } from "../netlink/error.ts";

/**
 * Whether requests name the zone of connection tracking. A kernel without zones (CONFIG_NF_CONNTRACK_ZONES) refuses
 * a request that names one, with EOPNOTSUPP; all of its entries are those of zone 0.
 */
export class Zones {
  #named = true;

  get named(): boolean {
    return this.#named;
  }

  /** Reads what a dump gives, and once more without the zone where the kernel knows none. */
  async *read<T>(dump: (zones: boolean) => AsyncIterable<T>): AsyncGenerator<T, void, void> {
    try {
      yield* dump(this.#named);
    } catch (error) {
      if (!this.#named || !(error instanceof NetlinkError) || error.code !== "ENOTSUP") throw error;
      this.#named = false;
      yield* dump(false);
    }
  }
}

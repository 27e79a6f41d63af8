import { NftBatch } from "@fairlead/netfilter/nft";
import type { ResolvedOptions } from "./options.ts";
import { TABLE } from "./plan/names.ts";
import type { NftablesPort } from "./port.ts";

/**
 * Milliseconds for which a chain stays after the last element that led to it went: kernels before 6.2 let go of it only
 * some time after that, and would refuse a transaction that deletes it.
 */
const PATIENCE = 1000;

/** Empty chains to which nothing leads, until the kernel can be told to delete them. */
export class StaleChains {
  readonly #port: NftablesPort;
  readonly #options: ResolvedOptions;
  /** By name, since when. */
  readonly #since = new Map<string, number>();

  constructor(port: NftablesPort, options: ResolvedOptions) {
    this.#port = port;
    this.#options = options;
  }

  /** @param inUse chains that something leads to again */
  change(stale: readonly string[], inUse: readonly string[]): void {
    for (const name of inUse) this.#since.delete(name);
    for (const name of stale) this.#since.set(name, this.#options.clock.monotonic());
  }

  /** The table was made anew. */
  forget(): void {
    this.#since.clear();
  }

  /**
   * Deletes those that have waited long enough; what the kernel still refuses waits again.
   *
   * @returns milliseconds until it is worth looking again; undefined: nothing waits
   */
  async remove(): Promise<number | undefined> {
    const now = this.#options.clock.monotonic();
    const due = [...this.#since].filter(([, since]) => now - since >= PATIENCE).map(([name]) => name);
    if (due.length > 0) {
      const batch = new NftBatch(this.#options.family === "IPv4" ? "ip" : "ip6", TABLE);
      for (const name of due) batch.deleteChain(name);
      try {
        await this.#port.commit(batch);
        for (const name of due) this.#since.delete(name);
      } catch (error) {
        if (!isCode(error, "EBUSY")) throw error;
        for (const name of due) this.#since.set(name, now);
      }
    }
    const [oldest] = this.#since.values();
    return oldest === undefined ? undefined : Math.max(PATIENCE - (now - oldest), 0);
  }
}

/** Whether the kernel refused a transaction for this reason. */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

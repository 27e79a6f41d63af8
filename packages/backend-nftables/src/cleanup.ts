/** Removes what this backend left, and chains that nothing names any more. */

import { errorCode } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { NFT_FAMILY, NftBatch } from "@fairlead/netfilter/nft";
import type { ResolvedOptions } from "./options.ts";
import { tableName } from "./plan/context.ts";
import type { NftablesPort } from "./port.ts";

/**
 * Removes what this mode, or kube-proxy in nftables mode, has made in one family: both have all of it in one table of
 * the same name. With a service proxy name it is the table of that one only.
 *
 * @returns whether there was anything
 * @throws Error when the kernel refuses it
 */
export async function removeNftablesMode(
  port: Pick<NftablesPort, "commit">,
  family: IPFamily,
  serviceProxyName = "",
): Promise<boolean> {
  try {
    await port.commit(new NftBatch(NFT_FAMILY[family], tableName(serviceProxyName)).deleteTable());
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

/**
 * Milliseconds for which a chain stays after the last element that led to it went: kernels before 6.2 let go of it only
 * some time after that, and would refuse a transaction that deletes it.
 */
const PATIENCE = 1000;

/** Empty chains to which nothing leads, until the kernel can be asked to delete them. */
export class StaleChains {
  readonly #commit: NftablesPort["commit"];
  readonly #options: ResolvedOptions;
  /** By name, since when. */
  readonly #since = new Map<string, number>();

  constructor(commit: NftablesPort["commit"], options: ResolvedOptions) {
    this.#commit = commit;
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
      const gone = await this.#delete(due);
      for (const name of due) {
        if (gone) this.#since.delete(name);
        else this.#since.set(name, now);
      }
    }
    const [oldest] = this.#since.values();
    return oldest === undefined ? undefined : Math.max(PATIENCE - (now - oldest), 0);
  }

  /** @returns false: the kernel still holds one of them */
  async #delete(chains: readonly string[]): Promise<boolean> {
    const { family, serviceProxyName } = this.#options;
    const batch = new NftBatch(NFT_FAMILY[family], tableName(serviceProxyName));
    for (const name of chains) batch.deleteChain(name);
    try {
      await this.#commit(batch);
      return true;
    } catch (error) {
      // ENOENT: another program removed one, or all of the table; what is to be there a full sync makes.
      if (errorCode(error) === "ENOENT") return true;
      if (errorCode(error) === "EBUSY") return false;
      throw error;
    }
  }
}

import { errorCode, errorText } from "@fairlead/base";
import { NFT_FAMILY, NftBatch, type NftTable } from "@fairlead/netfilter/nft";
import type { ResolvedOptions } from "./options.ts";
import { FLOWTABLE, flowtable } from "./plan/fast-path.ts";
import { tableName } from "./plan/names.ts";
import type { NftablesPort } from "./port.ts";

/**
 * Keeps the devices of the flowtable, in transactions of their own: a device that goes meanwhile fails the transaction
 * that names it, and no sync may fail for that. The kernel takes out devices that go, and puts none back.
 */
export class FlowtableDevices {
  readonly #commit: NftablesPort["commit"];
  readonly #options: ResolvedOptions;
  #has = new Map<string, number>();
  /** The last device work, after which the next one begins. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(commit: NftablesPort["commit"], options: ResolvedOptions) {
    this.#commit = commit;
    this.#options = options;
  }

  /** The table was made anew, or is unknown: its flowtable has no devices that are known. */
  forget(): void {
    this.#has.clear();
  }

  /** Adds the devices that are missing, and takes out those that are no longer wanted. */
  update(): Promise<void> {
    const update = this.#last.then(() => this.#update());
    this.#last = update.catch(() => {});
    return update;
  }

  /** Which of its devices the flowtable no longer has, in words; undefined: none. */
  difference(found: NftTable): string | undefined {
    const there = new Set(found.flowtables?.get(FLOWTABLE)?.devices);
    const wanted = this.#options.devices();
    const missing = [...this.#has].filter(([name, index]) => !there.has(name) && wanted.get(name) === index);
    const names = missing.map(([name]) => name);
    return missing.length === 0 ? undefined : `flowtable ${FLOWTABLE} lacks the devices ${names.join(", ")}`;
  }

  async #update(): Promise<void> {
    const wanted = this.#options.devices();
    const extra = [...this.#has.keys()].filter((name) => !wanted.has(name));
    for (const name of extra) await this.#delete(name);
    const missing = [...wanted].filter(([name, index]) => this.#has.get(name) !== index);
    if (missing.length === 0 || (await this.#add(missing, true))) return;
    for (const one of missing) await this.#add([one], false);
  }

  /** @returns false: one of several is gone, or refused */
  async #add(devices: readonly (readonly [name: string, index: number])[], several: boolean): Promise<boolean> {
    const made = flowtable({ fastPath: true });
    if (made === undefined) return true;
    const batch = this.#batch().addFlowtable({ ...made, devices: devices.map(([name]) => name) });
    try {
      await this.#commit(batch);
    } catch (error) {
      if (several && devices.length > 1) return false;
      // A device that went, or a table: whoever brings it back asks again.
      const [name = ""] = devices[0] ?? [];
      if (errorCode(error) !== "ENOENT") this.#options.onRefusedDevice(name, errorText(error));
      return false;
    }
    for (const [name, index] of devices) this.#has.set(name, index);
    return true;
  }

  /** One that went is out of the flowtable already. */
  async #delete(name: string): Promise<void> {
    this.#has.delete(name);
    try {
      await this.#commit(this.#batch().deleteDevices(FLOWTABLE, [name]));
    } catch (error) {
      if (errorCode(error) !== "ENOENT") this.#options.onRefusedDevice(name, errorText(error));
    }
  }

  #batch(): NftBatch {
    const { family, serviceProxyName } = this.#options;
    return new NftBatch(NFT_FAMILY[family], tableName(serviceProxyName));
  }
}

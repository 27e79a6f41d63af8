/** Keeps the devices of the flowtable as they should be. */

import { errorCode, errorText } from "@fairlead/base";
import { NFT_FAMILY, NftBatch, type NftTable } from "@fairlead/netfilter/nft";
import type { ResolvedOptions } from "./options.ts";
import { tableName } from "./plan/context.ts";
import { FLOWTABLE, flowtable } from "./plan/fast-path.ts";
import type { NftablesPort } from "./port.ts";

/**
 * Keeps the devices of the flowtable, in transactions of their own: a device that goes meanwhile fails the transaction
 * that names it, and no sync may fail for that. The kernel takes out devices that go, and puts none back.
 */
export class FlowtableDevices {
  readonly #commit: NftablesPort["commit"];
  readonly #options: ResolvedOptions;
  /** What it has of ours; undefined: there is no table of ours that is known. */
  #has: Map<string, number> | undefined;
  /** Reported as refused: each is tried again with every change. */
  readonly #refused = new Map<string, number>();
  /** The last device work, after which the next one begins. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(commit: NftablesPort["commit"], options: ResolvedOptions) {
    this.#commit = commit;
    this.#options = options;
  }

  /** The table is about to be made anew, or to go: devices wait until `fill`. */
  forget(): void {
    this.#has = undefined;
  }

  /** Adds all devices: the table was made anew, or another program has changed its flowtable. */
  fill(): Promise<void> {
    return this.#behind(async () => {
      if (!this.#options.fastPath) return;
      this.#has = new Map();
      await this.#update(this.#has);
    });
  }

  /** Adds the devices that are missing, and takes out those that are no longer wanted. */
  update(): Promise<void> {
    return this.#behind(async () => this.#has && this.#update(this.#has));
  }

  /** Which of its devices the flowtable no longer has, in words; undefined: none. */
  difference(found: NftTable): string | undefined {
    const there = new Set(found.flowtables?.get(FLOWTABLE)?.devices);
    const wanted = this.#options.devices();
    const missing = [...(this.#has ?? [])].filter(([name, index]) => !there.has(name) && wanted.get(name) === index);
    const names = missing.map(([name]) => name);
    return missing.length === 0 ? undefined : `flowtable ${FLOWTABLE} lacks the devices ${names.join(", ")}`;
  }

  #behind(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #update(has: Map<string, number>): Promise<void> {
    const wanted = this.#options.devices();
    const extra = [...has].filter(([name]) => !wanted.has(name));
    for (const [name, index] of extra) {
      has.delete(name);
      await this.#delete(name);
      // A flowtable keeps a device that is renamed, under its new name.
      const now = this.#options.deviceName(index);
      if (now !== undefined && now !== name && !wanted.has(now)) await this.#delete(now);
    }
    for (const name of this.#refused.keys()) if (!wanted.has(name)) this.#refused.delete(name);
    const missing = [...wanted].filter(([name, index]) => has.get(name) !== index);
    if (missing.length === 0 || (await this.#add(missing, has, true))) return;
    for (const one of missing) await this.#add([one], has, false);
  }

  /** @returns false: one of several is gone, or refused */
  async #add(
    devices: readonly (readonly [name: string, index: number])[],
    has: Map<string, number>,
    several: boolean,
  ): Promise<boolean> {
    const made = flowtable({ fastPath: true });
    if (made === undefined) return true;
    const batch = this.#batch().addFlowtable({ ...made, devices: devices.map(([name]) => name) });
    try {
      await this.#commit(batch);
    } catch (error) {
      if (several && devices.length > 1) return false;
      // A device that went, or a table: the code that brings it back asks again.
      const [name = "", index = 0] = devices[0] ?? [];
      if (errorCode(error) !== "ENOENT" && this.#refused.get(name) !== index) {
        this.#refused.set(name, index);
        this.#options.onRefusedDevice(name, errorText(error));
      }
      return false;
    }
    for (const [name, index] of devices) has.set(name, index);
    return true;
  }

  /** One that went is out of the flowtable already. */
  async #delete(name: string): Promise<void> {
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

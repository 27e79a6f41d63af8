import { decodeBatch, type NftBatch, type NftTable } from "@fairlead/netfilter/nft";
import { errnoOf, NftablesError } from "../../nftables/error.ts";
import { changeDevice } from "./flowtables.ts";
import { Journal } from "./journal.ts";
import { putTable } from "./put-table.ts";
import type { FakeTable } from "./state.ts";
import { carryOut } from "./transaction.ts";
import { tableKey } from "./work.ts";

/** The tables of a namespace, changed by whole transactions. */
export class FakeRuleset {
  /** By `tableKey`. */
  readonly tables = new Map<string, FakeTable>();
  generation = 1;
  /** Names of the namespace's devices. */
  readonly devices = new Set(["lo"]);
  #handles = 0n;

  /**
   * Does all of a transaction, or nothing.
   *
   * @param bytes of the finished batch; without its end it is only checked
   * @throws NftablesError for what the kernel refuses
   */
  carryOut(batch: NftBatch, bytes: Buffer, now: number): void {
    const { requests, commits } = decodeBatch(bytes);
    const journal = new Journal();
    const { tables, devices } = this;
    const work = { tables, devices, journal, now, nextHandle: () => this.#nextHandle(), mustBeFollowed: () => {} };
    const refusal = carryOut(work, requests);
    if (refusal !== undefined || !commits) journal.takeBack();
    else this.generation += 1;
    if (refusal !== undefined) throw new NftablesError(batch, batch.objectOf(refusal.sequence), errnoOf(refusal.code));
  }

  /** A whole table in the place of one of that name. */
  put(table: NftTable, now: number): void {
    const made = putTable(table, now, () => this.#nextHandle());
    this.tables.set(tableKey(table.family, table.name), made);
    this.generation += 1;
  }

  /** @returns the tables that were there */
  flush(): readonly FakeTable[] {
    const gone = [...this.tables.values()];
    this.tables.clear();
    this.generation += 1;
    return gone;
  }

  /** Flowtables lose a device that goes. */
  deleteDevice(name: string): void {
    this.devices.delete(name);
    changeDevice(this.tables.values(), name, []);
  }

  /** Flowtables keep one that gets another name. */
  renameDevice(name: string, to: string): void {
    this.devices.delete(name);
    this.devices.add(to);
    changeDevice(this.tables.values(), name, [to]);
  }

  #nextHandle(): bigint {
    this.#handles += 1n;
    return this.#handles;
  }
}

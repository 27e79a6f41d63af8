import type { NftBatch, NftFamily, NftSet } from "@fairlead/netfilter/nft";

/**
 * What this backend asks of the kernel's nf_tables. `@fairlead/kernel` has the client and the fake; both fit by shape,
 * so that this package imports neither.
 */
export interface NftablesPort {
  /**
   * Carries a transaction out, all of it or nothing.
   *
   * @throws Error with a `code` (`ENOENT`, `EBUSY`, …) when the kernel refuses it: nothing has changed then
   */
  commit(batch: NftBatch): Promise<void>;
  /** How many bytes a transaction can have where one would like `wanted`. */
  roomFor(wanted: number): number;
  /**
   * A number that every transaction of anybody in this namespace raises, or, where the port says so, each of others on
   * the tables that are ours.
   */
  generation(): Promise<number>;
  /** Absent: `generation` counts own transactions, too. */
  readonly countsOthersOnly?: true;
  /** Some of a table's sets and maps with their elements, by name; none where there is no such table. */
  sets(
    family: NftFamily,
    table: string,
    wanted: (set: Pick<NftSet, "name">) => boolean,
  ): Promise<ReadonlyMap<string, NftSet>>;
}

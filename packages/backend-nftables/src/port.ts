import type { NftBatch, NftFamily, NftSet, NftTable } from "@fairlead/netfilter/nft";

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
  /** A number that every transaction in this namespace raises. */
  generation(): Promise<number>;
  /** What other processes may have done to this table; absent: all that is known is the generation. */
  news?(family: NftFamily): TableNews;
  /**
   * A whole table.
   *
   * @returns undefined when there is no such table
   * @throws UnreadableNft when it has what this mode never writes
   */
  table(family: NftFamily, name: string): Promise<NftTable | undefined>;
  /** Some of a table's sets and maps with their elements, by name; none where there is no such table. */
  sets(
    family: NftFamily,
    table: string,
    wanted: (set: Pick<NftSet, "name">) => boolean,
  ): Promise<ReadonlyMap<string, NftSet>>;
}

/** Counts since the process began. */
export interface TableNews {
  /** Transactions of other processes that named the table. */
  readonly touched: number;
  /** Times at which transactions were not reported, of which any may have named it. */
  readonly unreported: number;
  /** The processes of `touched` since this was asked for the last time: `nft (4711)`. */
  readonly by: readonly string[];
}

/** Devices by name, with the kernel's number of each: one that goes and comes back under its name has another. */
export type Devices = ReadonlyMap<string, number>;

import type { Hex, NftBatch, NftFamily, NftSet, NftTable, SetElement } from "@fairlead/netfilter/nft";
import type { NftablesNews, NftablesWatchOptions } from "./watch.ts";

/** Tables of nf_tables in one network namespace, by netlink. */
export interface NftablesClient {
  /**
   * Carries a transaction out, all of it or nothing.
   *
   * @throws NftablesError when the kernel refuses it: nothing has changed then; with the code ENOBUFS the answer was
   *   lost, and it may have been carried out
   */
  commit(batch: NftBatch): Promise<void>;
  /**
   * Has the kernel check a transaction without carrying it out.
   *
   * @throws NftablesError when it would refuse it
   */
  check(batch: NftBatch): Promise<void>;
  /**
   * How many bytes a transaction can have: in a user namespace not as many as one likes.
   *
   * @param wanted bytes
   */
  roomFor(wanted: number): number;
  /** A number that every transaction in this namespace raises, of any program. */
  generation(): Promise<number>;
  /**
   * A whole table; what it costs grows with the square of its largest set.
   *
   * @returns undefined when there is no such table
   * @throws UnreadableNft when it has what is not known here
   */
  table(family: NftFamily, name: string): Promise<NftTable | undefined>;
  /**
   * Some sets of a table with their elements, such as those that packets fill: only these elements are read.
   *
   * @returns by name, without those of types that are not known here; none where there is no such table
   */
  sets(
    family: NftFamily,
    table: string,
    wanted: (set: Omit<NftSet, "elements">) => boolean,
  ): Promise<ReadonlyMap<string, NftSet>>;
  /**
   * What a set has of these keys; the cost is that of the keys, not of the set.
   *
   * @returns an element for each key that is there
   */
  elements(family: NftFamily, table: string, set: string, keys: readonly Hex[]): Promise<readonly SetElement[]>;
  /**
   * The packets that the rules of a chain have counted since they were written; the cost is that of the chain.
   *
   * @returns undefined: there is no such chain, or it has no rules
   */
  counted(family: NftFamily, table: string, chain: string): Promise<number | undefined>;
  /**
   * What others do in this namespace from the first step of the iteration on, until the signal aborts; own transactions
   * are not told. It makes everybody's transactions dearer: one who has a whole table to write does that first.
   */
  watch(options: NftablesWatchOptions): AsyncIterable<NftablesNews>;
  /** Closes the sockets; calls after that fail. */
  close(): Promise<void>;
}

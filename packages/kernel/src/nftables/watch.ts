import type { NftFamily } from "@fairlead/netfilter/nft";

/**
 * transaction: another process's. lost: the kernel had more to report than was read in time, or this process did not
 * listen for a moment, so that anything may have happened.
 */
export type NftablesNews =
  | {
      readonly kind: "transaction";
      readonly generation: number;
      /** The process that sent it: its number in the first namespace of processes, and the name of the thread. */
      readonly process: { readonly id: number; readonly name: string };
      /** Tables of the families ip and ip6 in which something was changed. */
      readonly tables: readonly TouchedTable[];
    }
  | {
      readonly kind: "lost";
      /** Tables named by what was read of transactions that were not reported whole. */
      readonly tables: readonly TouchedTable[];
    };

/** A table that a transaction touched. */
export interface TouchedTable {
  /** The table's family. */
  readonly family: NftFamily;
  /** The table's name. */
  readonly name: string;
}

/** Which transactions are reported, and for how long. */
export interface NftablesWatchOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  /** Names of tables: transactions that touch none of them are not reported. Default: all. */
  readonly tables?: readonly string[];
  /** Called once it listens: from then on nothing happens that is not reported. */
  readonly onListening?: () => void;
  /** Called when listening ended by an error; it begins again, and what may have been missed is reported as lost. */
  readonly onProblem?: (error: unknown) => void;
}

/** Whether a watch of these tables reports it. */
export function concerns(news: NftablesNews, tables: readonly string[] | undefined): boolean {
  return tables === undefined || news.kind === "lost" || news.tables.some(({ name }) => tables.includes(name));
}

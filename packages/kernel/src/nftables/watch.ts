import type { NftFamily } from "@fairlead/netfilter/nft";

/**
 * transaction: somebody else's. lost: the kernel had more to tell than was read in time, so that anything may have
 * happened.
 */
export type NftablesNews =
  | {
      readonly kind: "transaction";
      readonly generation: number;
      /** Who sent it: its number in the first namespace of processes, and the name of the thread. */
      readonly process: { readonly id: number; readonly name: string };
      /** Tables of the families ip and ip6 in which something was changed. */
      readonly tables: readonly TouchedTable[];
    }
  | { readonly kind: "lost" };

export interface TouchedTable {
  readonly family: NftFamily;
  readonly name: string;
}

export interface NftablesWatchOptions {
  readonly signal: AbortSignal;
  /** Names of tables: what touches none of them is not told. Default: all. */
  readonly tables?: readonly string[];
  /** The generation that is known: where it is another one when listening begins, that is told as lost. */
  readonly since?: number;
  /** Told when listening ended by an error; it is begun again, and what may have been missed is told as lost. */
  readonly onProblem?: (error: unknown) => void;
}

/** Whether one who watches these tables wants to know it. */
export function concerns(news: NftablesNews, tables: readonly string[] | undefined): boolean {
  return tables === undefined || news.kind === "lost" || news.tables.some(({ name }) => tables.includes(name));
}

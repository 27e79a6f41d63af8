import type { NftablesPort, TableNews } from "@fairlead/backend-nftables";
import { errorChainText } from "@fairlead/base";
import type { NftablesClient } from "@fairlead/kernel";
import type { NftFamily } from "@fairlead/netfilter/nft";
import type { Log } from "../log.ts";
import type { ForeignChanges } from "./mode.ts";

/** Names of processes that are kept until they are asked for. */
const MOST_NAMES = 5;

/**
 * The agent's tables of both families, and what other processes do to them: their transactions on tables of their own
 * are no news.
 */
export class WatchedTables {
  readonly #client: NftablesClient;
  readonly #table: string;
  readonly #log: Log;
  readonly #touched: Record<NftFamily, { count: number; by: Set<string> }> = {
    ip: { count: 0, by: new Set() },
    ip6: { count: 0, by: new Set() },
  };
  #unreported = 0;
  /** Until it resolves, what others do would be missed; undefined: nothing is to be followed yet. */
  #listening: Promise<void> | undefined;

  /** @param table their name in each family */
  constructor(client: NftablesClient, table: string, log: Log) {
    this.#client = client;
    this.#table = table;
    this.#log = log;
  }

  get port(): NftablesPort {
    const client = this.#client;
    return {
      commit: async (batch) => {
        await this.#listening;
        await client.commit(batch);
      },
      roomFor: (wanted) => client.roomFor(wanted),
      generation: () => client.generation(),
      news: (family) => this.#news(family),
      table: (family, name) => client.table(family, name),
      sets: (family, table, wanted) => client.sets(family, table, wanted),
    };
  }

  /** Follows what others do to the tables until `signal` aborts; commits wait until it has begun, or cannot. */
  async watch(notify: ForeignChanges, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listening = promise;
    const onProblem = (error: unknown) => {
      this.#log.warn("nftables event stream lost; every check compares all rules until it is back", {
        error: errorChainText(error),
      });
      this.#unreported++;
      resolve();
    };
    try {
      const options = { signal, tables: [this.#table], onListening: resolve, onProblem };
      for await (const news of this.#client.watch(options)) {
        if (news.kind === "lost") this.#unreported++;
        const by = news.kind === "lost" ? undefined : `${news.process.name} (${news.process.id})`;
        for (const { family, name } of news.tables) if (name === this.#table) this.#touch(family, by);
        notify.changed();
      }
    } finally {
      resolve();
    }
  }

  #touch(family: NftFamily, by: string | undefined): void {
    const touched = this.#touched[family];
    touched.count++;
    if (by !== undefined && touched.by.size < MOST_NAMES) touched.by.add(by);
  }

  #news(family: NftFamily): TableNews {
    const { count, by } = this.#touched[family];
    const news = { touched: count, unreported: this.#unreported, by: [...by] };
    by.clear();
    return news;
  }
}

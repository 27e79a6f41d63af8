import type { NftablesPort } from "@fairlead/backend-nftables";
import { errorChainText } from "@fairlead/base";
import type { NftablesClient } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";
import type { ForeignChanges } from "./mode.ts";

/**
 * The agent's tables of both families, and what others do to them. As a port for backends its generation counts that,
 * and not every transaction of everybody: other programs write tables of their own all the time, and so does the other
 * family.
 */
export class WatchedTables {
  readonly #client: NftablesClient;
  readonly #table: string;
  readonly #log: Log;
  #touched = 0;
  /** The kernel's generation after the last transaction of ours; kept until others' are told. */
  #known: number | undefined;
  #watching = false;

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
        await client.commit(batch);
        if (!this.#watching) this.#known = await client.generation();
      },
      roomFor: (wanted) => client.roomFor(wanted),
      generation: async () => this.#touched,
      countsOthersOnly: true,
      sets: (family, table, wanted) => client.sets(family, table, wanted),
    };
  }

  /** Tells what others do to the tables until `signal` aborts, and what they did since our last transaction. */
  async watch(notify: ForeignChanges, signal: AbortSignal): Promise<void> {
    this.#watching = true;
    const onProblem = (error: unknown) =>
      this.#log.warn("What others do to nftables is not told for a while; all is written again", {
        error: errorChainText(error),
      });
    const since = this.#known;
    const wanted = { signal, tables: [this.#table], ...(since !== undefined && { since }), onProblem };
    for await (const news of this.#client.watch(wanted)) {
      this.#touched++;
      if (news.kind === "lost") notify.lost();
      else notify.changed(`${news.process.name} (${news.process.id})`);
    }
  }
}

import { attemptAll, errorChainText, errorCode, IP_FAMILIES, type IPFamily, sleep, type Timers } from "@fairlead/base";
import { REPLY_TABLE, type ReplyViaSettings } from "@fairlead/config";
import type { NftablesClient, Routing, RoutingState } from "@fairlead/kernel";
import { NFT_FAMILY, NftBatch } from "@fairlead/netfilter/nft";
import type { Log } from "../log/log.ts";
import { removal, routingCommands } from "./routes.ts";
import { hasChains, replyChains, writeChains } from "./table.ts";
import { chooseUplinks, type Uplink } from "./uplinks.ts";

export interface ReplyRoutingParts {
  readonly settings: ReplyViaSettings;
  readonly families: readonly IPFamily[];
  /** As `replyChains` has it. */
  readonly translates: boolean;
  readonly routing: Routing;
  readonly nftables: Pick<NftablesClient, "commit" | "table">;
  /** Milliseconds between two looks whether all is as it has to be. */
  readonly intervalMs: number;
  readonly timers: Timers;
  readonly log: Log;
}

/** Keeps answers on the interface that their client came in by. */
export class ReplyRouting {
  readonly #parts: ReplyRoutingParts;
  readonly #numbers = new Map<string, number>();
  #uplinks: readonly Uplink[] = [];
  #said = "";

  constructor(parts: ReplyRoutingParts) {
    this.#parts = parts;
  }

  /** Writes and compares until the signal aborts; what was written stays. Failures are logged. */
  async run(signal: AbortSignal): Promise<void> {
    const { timers, intervalMs } = this.#parts;
    let wake = () => {};
    const watching = this.#watch(signal, () => wake());
    while (!signal.aborted) {
      const changed = new AbortController();
      wake = () => changed.abort();
      await this.#attempt();
      await sleep(timers, intervalMs, AbortSignal.any([signal, changed.signal]));
    }
    await watching;
  }

  /**
   * Writes what differs. Of what cannot be written all else is: other routes, the marks, the other family.
   *
   * @throws Error when something cannot be read, or something could not be written
   */
  async sync(): Promise<void> {
    const { settings, families, routing } = this.#parts;
    const states = new Map<IPFamily, RoutingState>();
    for (const family of families) states.set(family, await routing.read(family));
    this.#remember(states);
    const main = [...states.values()].flatMap((state) => state.main);
    const { uplinks, leftOut } = chooseUplinks(settings, main, this.#numbers);
    this.#uplinks = uplinks;
    this.#report(uplinks, leftOut);
    const works = [...states].flatMap(([family, state]) => [
      () => routing.write(family, routingCommands(uplinks, settings, state)),
      () => this.#mark(family, uplinks),
    ]);
    await attemptAll(works, "");
  }

  /** What an earlier process gave: connections have its marks. */
  #remember(states: ReadonlyMap<IPFamily, RoutingState>): void {
    if (this.#numbers.size > 0) return;
    const { firstTable } = this.#parts.settings;
    for (const { own } of states.values()) {
      for (const route of own)
        if (route.table >= firstTable) this.#numbers.set(route.interface, route.table - firstTable);
    }
  }

  async #mark(family: IPFamily, uplinks: readonly Uplink[]): Promise<void> {
    const { settings, translates, nftables } = this.#parts;
    const chains = replyChains(uplinks, settings, translates);
    const there = await nftables.table(NFT_FAMILY[family], REPLY_TABLE).catch(() => undefined);
    if (there !== undefined && hasChains(there, chains)) return;
    await nftables.commit(writeChains(new NftBatch(NFT_FAMILY[family], REPLY_TABLE), chains));
  }

  async #attempt(): Promise<void> {
    const { log, intervalMs } = this.#parts;
    try {
      await this.sync();
    } catch (error) {
      log.error("Failed to write reply routing; answers may leave by another interface, retrying", {
        error: errorChainText(error),
        seconds: intervalMs / 1000,
      });
    }
  }

  async #watch(signal: AbortSignal, wake: () => void): Promise<void> {
    const { routing, log, intervalMs } = this.#parts;
    const matters = (name: string) => this.#uplinks.some((uplink) => uplink.interface === name);
    try {
      for await (const _ of routing.watch({ signal, matters })) wake();
    } catch (error) {
      log.warn("Cannot follow routes; changes take effect at the next comparison", {
        error: errorChainText(error),
        seconds: intervalMs / 1000,
      });
    }
  }

  #report(uplinks: readonly Uplink[], leftOut: readonly string[]): void {
    const { log } = this.#parts;
    const names = uplinks.map((uplink) => uplink.interface);
    const said = JSON.stringify([names, leftOut]);
    if (said === this.#said) return;
    this.#said = said;
    log.info("Answers leave by the interface that their client came in by", { interfaces: names });
    if (leftOut.length === 0) return;
    log.warn("replyRouting.markMask has too few bits; answers to clients of these interfaces leave as routed", {
      interfaces: leftOut,
    });
  }
}

/**
 * Removes marks, rules and routes of both families.
 *
 * @param nftables absent: there are no marks
 * @returns whether there was anything
 * @throws Error when something cannot be removed
 */
export async function removeReplyRouting(
  routing: Pick<Routing, "read" | "write">,
  nftables: Pick<NftablesClient, "commit"> | undefined,
): Promise<boolean> {
  let found = false;
  for (const family of IP_FAMILIES) {
    const commands = removal(await routing.read(family));
    await routing.write(family, commands);
    found ||= commands.length > 0;
    try {
      await nftables?.commit(new NftBatch(NFT_FAMILY[family], REPLY_TABLE).deleteTable());
      found ||= nftables !== undefined;
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
    }
  }
  return found;
}

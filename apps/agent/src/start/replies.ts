import { errorChainText, type IPFamily, type Timers } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { REPLY_TABLE } from "@fairlead/config";
import type { ModeFacts } from "@fairlead/core";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { ReplyRouting, removeReplyRouting } from "../reply/reply-routing.ts";
import { StartError } from "./start-error.ts";

export interface ReplyParts {
  readonly config: AgentConfig;
  readonly families: readonly IPFamily[];
  readonly mode: ModeFacts;
  readonly kernel: Pick<Kernel, "routing" | "nftables" | "hasNftTable">;
  readonly clock: Timers;
  readonly log: Log;
}

/**
 * What keeps answers on the interface that their client came in by; undefined where that is not asked for, and then
 * what an earlier agent has left of it is removed.
 *
 * @throws StartError when the kernel has no nf_tables
 */
export async function prepareReplies(parts: ReplyParts): Promise<ReplyRouting | undefined> {
  const { config, families, mode, kernel, clock, log } = parts;
  const { replyVia: settings, serviceProxyName } = config;
  if (settings === undefined) {
    // Of the node's first proxy only: a second one has no such table.
    if (serviceProxyName === "" && (await kernel.hasNftTable(REPLY_TABLE))) await removeStale(kernel, log);
    return undefined;
  }
  return new ReplyRouting({
    settings,
    families,
    translates: mode.takesIn !== true,
    routing: kernel.routing,
    nftables: await kernel.nftables().catch((error: unknown) => {
      throw new StartError(
        `replyVia marks connections with nf_tables, which cannot be reached: ${errorChainText(error)}`,
      );
    }),
    intervalMs: config[config.mode].syncPeriodMs,
    timers: clock,
    log,
  });
}

async function removeStale(kernel: ReplyParts["kernel"], log: Log): Promise<void> {
  try {
    await removeReplyRouting(kernel.routing, await kernel.nftables());
    log.info("Removed stale reply routing");
  } catch (error) {
    log.warn(
      "Failed to remove stale reply routing; answers may leave by another interface, retrying at the next start",
      {
        error: errorChainText(error),
      },
    );
  }
}

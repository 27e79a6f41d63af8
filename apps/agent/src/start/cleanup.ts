import { errorChainText, IP_FAMILIES } from "@fairlead/base";
import { REPLY_TABLE } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { errorTexts, removeTables } from "../modes/leftovers.ts";
import type { ModeRemoval } from "../modes/mode.ts";
import { removeReplyRouting } from "../reply/reply-routing.ts";

/**
 * Removes what kube-proxy and Fairlead left in the kernel, in both families. Resolves to the exit code.
 *
 * @param removals the modes, in the order in which they are removed
 */
export async function cleanUp(removals: readonly ModeRemoval[], kernel: Kernel, log: Log): Promise<number> {
  let failed = false;
  for (const family of IP_FAMILIES) {
    const errors = await cleanFamily(removals, kernel, family, log);
    if (errors.length === 0) log.info("Removed the iptables rules", { ipFamily: family });
    else {
      failed = true;
      log.error("Failed to remove the iptables rules", { ipFamily: family, errors });
    }
  }
  const nothingLeft = await removeTables(removals, kernel, "", log);
  const routed = await removeReplies(kernel, log);
  return failed || !nothingLeft || !routed ? 1 : 0;
}

/** @returns false: something could not be removed */
async function removeReplies(kernel: Kernel, log: Log): Promise<boolean> {
  try {
    const marks = (await kernel.hasNftTable(REPLY_TABLE)) === true ? await kernel.nftables() : undefined;
    if (await removeReplyRouting(kernel.routing, marks)) log.info("Removed reply routing");
    return true;
  } catch (error) {
    log.error("Failed to remove reply routing; run --cleanup again", { error: errorChainText(error) });
    return false;
  }
}

/** Removes what an agent with a name left, and nothing of the node's first proxy. Resolves to the exit code. */
export async function cleanUpInstance(
  removals: readonly ModeRemoval[],
  kernel: Pick<Kernel, "removeNftTables">,
  serviceProxyName: string,
  log: Log,
): Promise<number> {
  return (await removeTables(removals, kernel, serviceProxyName, log)) ? 0 : 1;
}

/**
 * Both variants of iptables are cleaned, as far as they are in use: it is unknown which one was, when the rules were
 * made.
 */
async function cleanFamily(
  removals: readonly ModeRemoval[],
  kernel: Kernel,
  family: IPFamily,
  log: Log,
): Promise<readonly string[]> {
  const errors = new Set<string>();
  const attempt = (work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      for (const text of errorTexts(error)) errors.add(text);
    });
  await attempt(async () => {
    for (const rules of await kernel.iptablesInUse(family)) {
      for (const { facts, removeRules } of removals) {
        await attempt(async () => {
          const there = await removeRules?.(kernel, rules);
          if (there === true) log.info(`Removed stale objects of ${facts.name} mode`, { ipFamily: family });
        });
      }
    }
  });
  return [...errors];
}

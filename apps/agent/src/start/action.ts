/** What the process was started for; what cleaning up removes. */

import { writeFileSync } from "node:fs";
import { errorChainText, IP_FAMILIES } from "@fairlead/base";
import { type AgentConfig, REPLY_TABLE } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { prepareConntrack } from "../conntrack-settings.ts";
import { type Kernel, openedOnce } from "../kernel.ts";
import { createLog, type Log } from "../log.ts";
import { modes } from "../modes/index.ts";
import { errorTexts, removeTables } from "../modes/leftovers.ts";
import type { ModeRemoval } from "../modes/mode.ts";
import { realKernel } from "../real-kernel.ts";
import { removeReplyRouting } from "../reply-routing.ts";
import { chooseMode, openFamilies } from "./choose-mode.ts";
import { heapSnapshotSignal } from "./engine.ts";
import { runLocal } from "./local.ts";
import { lockNode, runOnNode } from "./node.ts";
import { StartError } from "./process.ts";

/** Does what the process was started for; resolves to its exit code. */
export async function runAction(
  config: AgentConfig,
  warnings: readonly string[],
  { out, err }: { readonly out: (text: string) => void; readonly err: (text: string) => void },
): Promise<number> {
  const log = createLog(config.logging);
  for (const warning of warnings) log.warn(warning);
  try {
    return await act(config, log, out);
  } catch (error) {
    if (error instanceof StartError) err(`${error.message}\n`);
    else log.error("Fairlead cannot continue; exiting", { reason: errorChainText(error) });
    return 1;
  }
}

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

async function act(config: AgentConfig, log: Log, out: (text: string) => void): Promise<number> {
  const { action } = config;
  if (action.kind === "write-config") {
    writeConfig(action.path, action.text);
    return 0;
  }
  if (action.kind === "run") heapSnapshotSignal(config, log);
  if (action.kind === "run" && config.userspace.only) return runLocal(config, log, out);
  const kernel = openedOnce(realKernel(log));
  if (action.kind === "cleanup") {
    await lockNode(config, log);
    return config.serviceProxyName === ""
      ? cleanUp(modes, kernel, log)
      : cleanUpInstance(modes, kernel, config.serviceProxyName, log);
  }
  if (action.kind === "run") return runOnNode(config, kernel, log);
  await initialize(config, kernel, log);
  log.info("System initialized and --init-only specified");
  return 0;
}

async function initialize(config: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  const { mode } = await chooseMode(modes, config, kernel, log);
  await openFamilies(mode, kernel, config, log);
  await prepareConntrack(config.conntrack, kernel.sysctl, log);
  await mode.prepare?.(config, kernel, log);
}

function writeConfig(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new StartError(`--write-config-to=${path}: cannot be written: ${errorChainText(error)}`, { cause: error });
  }
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
async function cleanUpInstance(
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

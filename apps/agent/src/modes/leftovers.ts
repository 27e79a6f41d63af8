import { errorChainText } from "@fairlead/base";
import type { IPFamily, ModeFacts } from "@fairlead/core";
import type { IptablesPort } from "@fairlead/netfilter";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import type { SyncFollower } from "../sync/follower.ts";
import type { KeepsChain, ModeRemoval } from "./mode.ts";

/** What has to be at hand to remove what other modes left. */
type LeftoverKernel = Pick<Kernel, "removeNftTables" | "iptables" | "iptablesInUse" | "ipvs">;

export interface LeftoversParts {
  readonly kernel: LeftoverKernel;
  readonly mode: ModeFacts;
  /** All modes that may have left something, the running one among them or not. */
  readonly removals: readonly ModeRemoval[];
  readonly families: readonly IPFamily[];
  readonly log: Log;
}

/** Once all families serve, removes what another mode of kube-proxy left: before that it still does the serving. */
export function leftoversFollower(parts: LeftoversParts): SyncFollower {
  const { kernel, mode, families, log } = parts;
  const others = parts.removals.filter(({ facts }) => facts.name !== mode.name);
  const waiting = new Set(families);
  return {
    async ran({ family, outcome }) {
      if (outcome.kind !== "synced" || !waiting.delete(family) || waiting.size > 0) return;
      await removeTables(others, kernel, "", log);
      for (const each of families) await removeRules(others, { kernel, mode, family: each, log });
    },
  };
}

/**
 * Removes what the modes left outside iptables, of one service proxy name or none. Returns whether nothing is left, as
 * far as can be seen.
 */
export async function removeTables(
  removals: readonly ModeRemoval[],
  kernel: Pick<Kernel, "removeNftTables">,
  serviceProxyName: string,
  log: Log,
): Promise<boolean> {
  let nothingLeft = true;
  const owner = serviceProxyName === "" ? "kube-proxy" : `service proxy ${serviceProxyName}`;
  for (const { facts, removeTables: remove } of removals) {
    try {
      for (const table of (await remove?.(kernel, serviceProxyName)) ?? [])
        log.info(`Removed stale objects of ${owner}'s ${facts.name} mode`, { table });
    } catch (error) {
      nothingLeft = false;
      log.warn(`Failed to remove stale objects of ${owner}'s ${facts.name} mode; they stay in place`, {
        error: errorChainText(error),
      });
    }
  }
  return nothingLeft;
}

interface FamilyRemoval extends Pick<LeftoversParts, "kernel" | "mode" | "log"> {
  readonly family: IPFamily;
}

/** What the modes that do not run left in iptables, kube-proxy's or ours. */
async function removeRules(
  removals: readonly ModeRemoval[],
  { kernel, mode, family, log }: FamilyRemoval,
): Promise<void> {
  const ports = await portsOf(kernel, mode, family).catch((error: unknown) => {
    log.verbose(1, "Not searching for iptables rules of other modes", {
      ipFamily: family,
      error: errorChainText(error),
    });
    return [];
  });
  for (const { facts, removeRules: remove } of removals) {
    try {
      for (const rules of ports) await remove?.(kernel, rules, keepsOf(mode));
    } catch (error) {
      log.warn(`Failed to remove stale rules of ${facts.name} mode; they stay in place`, {
        ipFamily: family,
        errors: errorTexts(error),
      });
    }
  }
}

/** A mode that works with iptables has opened them; another one did not choose a variant, so all are looked into. */
async function portsOf(kernel: LeftoverKernel, mode: ModeFacts, family: IPFamily): Promise<readonly IptablesPort[]> {
  return mode.needs.iptables.length > 0 ? [await kernel.iptables(family)] : kernel.iptablesInUse(family);
}

/** The modes have names of chains in common. */
function keepsOf({ keeps }: ModeFacts): KeepsChain {
  return (table, chain) => keeps[table]?.includes(chain) ?? false;
}

/** What several attempts failed of, each by itself. */
export function errorTexts(error: unknown): readonly string[] {
  return error instanceof AggregateError ? error.errors.map(errorChainText) : [errorChainText(error)];
}

import { FIXED_CHAINS, type IptablesPort, removeIptablesMode } from "@fairlead/backend-iptables";
import { CHAINS, DEVICE, IPVS_FILTER, removeIpvsMode } from "@fairlead/backend-ipvs";
import { removeUserspaceMode, CHAINS as USERSPACE_CHAINS } from "@fairlead/backend-userspace";
import type { IPFamily } from "@fairlead/core";
import type { Table } from "@fairlead/netfilter";
import type { Kernel } from "../host/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import type { ServedMode } from "../start/choose-mode.ts";
import type { SyncFollower } from "../sync/follower.ts";
import { ipvsPort } from "./ipvs.ts";

/** What has to be at hand to remove what other modes left. */
export type LeftoverKernel = Pick<Kernel, "removeNftTables" | "iptables" | "ipvs">;

/** Once all families serve, removes what another mode of kube-proxy left: before that it still does the serving. */
export function leftoversFollower(
  kernel: LeftoverKernel,
  mode: ServedMode,
  families: readonly IPFamily[],
  log: Log,
): SyncFollower {
  const waiting = new Set(families);
  return {
    async ran({ family, outcome }) {
      if (outcome.kind !== "synced" || !waiting.delete(family) || waiting.size > 0) return;
      await removeLeftovers(kernel, log);
      for (const each of families) await removeOtherModes(kernel, mode, each, log);
    },
  };
}

/** Removes the tables of kube-proxy's nftables mode. Returns whether nothing is left, as far as can be seen. */
export async function removeLeftovers(kernel: Pick<Kernel, "removeNftTables">, log: Log): Promise<boolean> {
  try {
    for (const table of await kernel.removeNftTables())
      log.info("Removed what kube-proxy's nftables mode left", { table });
    return true;
  } catch (error) {
    log.warn("Cannot look for what kube-proxy's nftables mode left", { error: describeError(error) });
    return false;
  }
}

type Keep = (table: Table, chain: string) => boolean;

/** The chains of each mode, which stay when another's are removed: the modes have names in common. */
const keeps: Readonly<Record<ServedMode, Keep>> = {
  iptables: (table, chain) => chainsOf(FIXED_CHAINS, table).includes(chain) || chain.startsWith("KUBE-EXT-"),
  ipvs: (table, chain) => chainsOf(CHAINS, table).includes(chain),
  userspace: (table, chain) => chainsOf(USERSPACE_CHAINS, table).includes(chain),
};

function chainsOf(chains: Readonly<Partial<Record<Table, readonly string[]>>>, table: Table): readonly string[] {
  return chains[table] ?? [];
}

type Remove = (kernel: LeftoverKernel, rules: IptablesPort, keep?: Keep) => Promise<unknown>;

const removals: Readonly<Record<ServedMode, Remove>> = {
  ipvs: removeIpvsLeftovers,
  userspace: (_, rules, keep) => removeUserspaceLeftovers(rules, keep),
  iptables: (_, rules, keep) => removeIptablesMode(rules, keep && { keep }),
};

/** What the modes that do not run have left, kube-proxy's or ours. */
async function removeOtherModes(kernel: LeftoverKernel, mode: ServedMode, family: IPFamily, log: Log): Promise<void> {
  for (const [other, remove] of Object.entries(removals)) {
    if (other === mode) continue;
    try {
      await remove(kernel, await kernel.iptables(family), keeps[mode]);
    } catch (error) {
      const errors = error instanceof AggregateError ? error.errors.map(describeError) : [describeError(error)];
      log.warn(`Cannot remove what ${other} mode left`, { ipFamily: family, errors });
    }
  }
}

/** @returns whether there was anything */
export async function removeUserspaceLeftovers(rules: IptablesPort, keep?: Keep): Promise<boolean> {
  return removeUserspaceMode(rules, keep && { keep });
}

/**
 * Ipvs mode is known by its device and a chain that no other mode has. Nodes that never had it often lack the tools, too.
 *
 * @returns whether there was anything
 */
export async function removeIpvsLeftovers(
  kernel: Pick<Kernel, "ipvs">,
  rules: IptablesPort,
  keep?: Keep,
): Promise<boolean> {
  const chains = await rules.chains("filter");
  if (!chains.has(IPVS_FILTER) && (await kernel.ipvs.links.addresses(DEVICE)) === undefined) return false;
  await removeIpvsMode(ipvsPort(kernel, rules), keep && { keep });
  return true;
}

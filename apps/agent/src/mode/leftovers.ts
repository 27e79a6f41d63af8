import { FIXED_CHAINS, removeIptablesMode } from "@fairlead/backend-iptables";
import { CHAINS, DEVICE, IPVS_FILTER, removeIpvsMode } from "@fairlead/backend-ipvs";
import type { IPFamily } from "@fairlead/core";
import type { Table } from "@fairlead/netfilter";
import type { Kernel } from "../kernel/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import type { SyncFollower } from "../sync/syncer.ts";
import type { ServedMode } from "./choose.ts";
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
      for (const each of families) await removeOtherMode(kernel, mode, each, log);
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

const keepIptables: Keep = (table, chain) =>
  chainsOf(FIXED_CHAINS, table).includes(chain) || chain.startsWith("KUBE-EXT-");
const keepIpvs: Keep = (table, chain) => chainsOf(CHAINS, table).includes(chain);

function chainsOf(chains: Readonly<Partial<Record<Table, readonly string[]>>>, table: Table): readonly string[] {
  return chains[table] ?? [];
}

/** What the one of the two modes that does not run has left, kube-proxy's or ours. */
async function removeOtherMode(kernel: LeftoverKernel, mode: ServedMode, family: IPFamily, log: Log): Promise<void> {
  try {
    if (mode === "ipvs") await removeIptablesMode(await kernel.iptables(family), { keep: keepIpvs });
    else await removeIpvsLeftovers(kernel, family, keepIptables);
  } catch (error) {
    const other = mode === "ipvs" ? "iptables" : "ipvs";
    const errors = error instanceof AggregateError ? error.errors.map(describeError) : [describeError(error)];
    log.warn(`Cannot remove what ${other} mode left`, { ipFamily: family, errors });
  }
}

/**
 * Ipvs mode is known by its device and a chain that no other mode has. Nodes that never had it often lack the tools, too.
 *
 * @returns whether there was anything
 */
export async function removeIpvsLeftovers(kernel: LeftoverKernel, family: IPFamily, keep?: Keep): Promise<boolean> {
  const rules = await kernel.iptables(family);
  const chains = await rules.chains("filter");
  if (!chains.has(IPVS_FILTER) && (await kernel.ipvs.links.addresses(DEVICE)) === undefined) return false;
  await removeIpvsMode(ipvsPort(kernel, rules), keep && { keep });
  return true;
}

import type { IPFamily, ModeFacts } from "@fairlead/core";
import type { IptablesPort, Table } from "@fairlead/netfilter";
import type { Kernel } from "../host/kernel.ts";

/**
 * Finds the iptables of a family, and reads one rule of each table: only that finds missing permissions and kernel
 * parts. One rule, since the tables are full after a restart.
 *
 * @throws IptablesError saying what is missing and how to get it
 */
export async function openTables(kernel: Kernel, family: IPFamily, tables: readonly Table[]): Promise<void> {
  const port = await kernel.iptables(family);
  for (const table of tables) await port.list(table, "OUTPUT", 1);
}

/** The iptables of families that were opened. */
export async function openedTables(
  kernel: Kernel,
  families: readonly IPFamily[],
): Promise<ReadonlyMap<IPFamily, IptablesPort>> {
  return new Map(await Promise.all(families.map(async (family) => [family, await kernel.iptables(family)] as const)));
}

/** Whether both families can be synced at once: tools of the legacy variant wait for one lock. */
export function atOnce({ familiesAtOnce }: ModeFacts, ports: ReadonlyMap<IPFamily, IptablesPort>): boolean {
  return familiesAtOnce && [...ports.values()].every(({ variant }) => variant === "nft");
}

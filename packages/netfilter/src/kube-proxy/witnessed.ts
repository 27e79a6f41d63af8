import type { Table } from "../rule/rule.ts";
import type { IptablesPort } from "./iptables-port.ts";

/** Entries up to which the kernel's word of a legacy table is about each of them; beyond, about number and size. */
const EACH_TOLD = 5000;

/**
 * Holds what a tool says against what the kernel says: one that ends with exit code 0 and has written nothing would
 * leave a new service unserved, and nobody would know.
 *
 * @param tables those that the writing cannot leave as they were
 * @throws Error that names a table in which nothing has changed; what `write` throws
 */
export async function witnessed<T>(
  port: Pick<IptablesPort, "family" | "glance">,
  tables: readonly Table[],
  write: () => Promise<T>,
): Promise<T> {
  const before = new Map<Table, string>();
  for (const table of tables) {
    const { state, entries = 0 } = (await port.glance?.(table)) ?? {};
    if (state !== undefined && entries <= EACH_TOLD) before.set(table, state);
  }
  const result = await write();
  for (const [table, state] of before) {
    if ((await port.glance?.(table))?.state !== state) continue;
    throw new Error(
      `iptables-restore (${port.family}) reported success, but the kernel says that the ${table} table is as it was before`,
    );
  }
  return result;
}

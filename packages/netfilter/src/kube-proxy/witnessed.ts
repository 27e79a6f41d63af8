import type { Table } from "../rule/rule.ts";
import type { IptablesPort, TableGlance } from "./iptables-port.ts";

/** Entries up to which the kernel's word of a legacy table is about each of them; beyond, about number and size. */
export const EACH_TOLD = 5000;

/** What the kernel said of some tables; one that it says nothing of is absent. */
export type Glances = ReadonlyMap<Table, TableGlance>;

/** Asks the kernel for tables as they are now, without their rules. */
export async function glancesAt(port: Pick<IptablesPort, "glance">, tables: readonly Table[]): Promise<Glances> {
  const glances = new Map<Table, TableGlance>();
  for (const table of tables) {
    const glance = await port.glance?.(table);
    if (glance !== undefined) glances.set(table, glance);
  }
  return glances;
}

/**
 * Holds what a tool says against what the kernel says: one that ends with exit code 0 and has written nothing would
 * leave a new service unserved, and nobody would know.
 *
 * @throws Error that names the table where nothing has changed in it
 */
export function expectChange(
  { family }: Pick<IptablesPort, "family">,
  table: Table,
  before: Glances,
  after: Glances,
): void {
  const { state } = before.get(table) ?? {};
  if (state === undefined || state !== after.get(table)?.state) return;
  throw new Error(
    `iptables-restore (${family}) reported success, but the kernel says that the ${table} table is as it was before`,
  );
}

/**
 * Writes, and holds the tool's word against the kernel's, as far as that shows each change.
 *
 * @param tables those that the writing cannot leave as they were
 * @throws Error that names a table in which nothing has changed; what `write` throws
 */
export async function witnessed<T>(
  port: Pick<IptablesPort, "family" | "glance">,
  tables: readonly Table[],
  write: () => Promise<T>,
): Promise<T> {
  const before = await glancesAt(port, tables);
  const shown = [...before].filter(([, { entries = 0 }]) => entries <= EACH_TOLD).map(([table]) => table);
  const result = await write();
  const after = await glancesAt(port, shown);
  for (const table of shown) expectChange(port, table, before, after);
  return result;
}

import type { Written } from "./commit.ts";
import type { Totals } from "./plan/totals.ts";
import type { RulesPort } from "./port.ts";

/**
 * Entries up to which the kernel's word of a legacy table is about each of them; beyond, about their number and size.
 */
const EACH_TOLD = 5000;

type ServiceTable = keyof Totals;

/** What the kernel said of the tables before something was written; undefined: nothing. */
type States = Readonly<Record<ServiceTable, Awaited<ReturnType<NonNullable<RulesPort["glance"]>>>>>;

/**
 * Holds what a tool says against what the kernel says: a tool that ends with exit code 0 and has written nothing would
 * leave a new service unserved, and nobody would know.
 */
export class Witness {
  readonly #port: RulesPort;

  constructor(port: RulesPort) {
    this.#port = port;
  }

  async states(): Promise<States> {
    return { filter: await this.#port.glance?.("filter"), nat: await this.#port.glance?.("nat") };
  }

  /**
   * After a change. A legacy table of many rules may be as it was by number and size when one rule took another's
   * place.
   *
   * @throws Error that names the table in which nothing has changed
   */
  async confirm(before: States, written: Written, [from, to]: readonly [Totals, Totals]): Promise<void> {
    const after = await this.states();
    for (const table of ["filter", "nat"] as const) {
      const { entries = 0 } = before[table] ?? {};
      const shows = entries <= EACH_TOLD || to[table] > from[table];
      if (shows && (written.get(table) ?? 0) > 0) this.#expectOther(table, before, after);
    }
  }

  /**
   * After everything was written, which in a legacy table may have been there just so before.
   *
   * @throws Error that names the table in which nothing has changed
   */
  async confirmAll(before: States): Promise<void> {
    if (this.#port.variant === "nft") this.#expectOther("nat", before, await this.states());
  }

  #expectOther(table: ServiceTable, before: States, after: States): void {
    if (before[table] === undefined || before[table].state !== after[table]?.state) return;
    throw new Error(
      `iptables-restore (${this.#port.family}) reported success, but the kernel says that the ${table} table is as it was before`,
    );
  }
}

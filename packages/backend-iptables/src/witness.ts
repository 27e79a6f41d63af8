import { EACH_TOLD, expectChange, type Glances, glancesAt } from "@fairlead/netfilter";
import type { Written } from "./commit.ts";
import type { Totals } from "./plan/totals.ts";
import type { RulesPort } from "./port.ts";

const TABLES = ["filter", "nat"] as const satisfies readonly (keyof Totals)[];

/** Holds what a tool says of filter and nat against what the kernel says. */
export class Witness {
  readonly #port: RulesPort;

  constructor(port: RulesPort) {
    this.#port = port;
  }

  /** What the kernel says of the tables before something is written. */
  async states(): Promise<Glances> {
    return glancesAt(this.#port, TABLES);
  }

  /**
   * After a change. A legacy table of many rules may be as it was by number and size when one rule took another's
   * place.
   *
   * @throws Error that names the table in which nothing has changed
   */
  async confirm(before: Glances, written: Written, [from, to]: readonly [Totals, Totals]): Promise<void> {
    const after = await this.states();
    for (const table of TABLES) {
      const { entries = 0 } = before.get(table) ?? {};
      const shows = entries <= EACH_TOLD || to[table] > from[table];
      if (shows && (written.get(table) ?? 0) > 0) expectChange(this.#port, table, before, after);
    }
  }

  /**
   * After everything was written, which in a legacy table may have been there just so before.
   *
   * @throws Error that names the table in which nothing has changed
   */
  async confirmAll(before: Glances): Promise<void> {
    if (this.#port.variant === "nft") expectChange(this.#port, "nat", before, await this.states());
  }
}

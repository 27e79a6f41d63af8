import type { Table } from "@fairlead/netfilter";
import type { RulesPort } from "./port.ts";

/** What the kernel tells of some chains of a table, beside what was known of them. */
export interface News {
  /** Those that may not hold what they must. */
  readonly changed: ReadonlySet<string>;
  /** Rules of a chain, 0 where it is not there; undefined: the kernel does not tell. */
  count(chain: string): number | undefined;
  /** Whether a changed one held what it must when it was looked at last: then somebody else has changed it. */
  wasKnown(chain: string): boolean;
  /** These hold what they must. */
  confirm(chains: Iterable<string>): void;
}

/** Remembers by the kernel's marks which chains hold what they must, so that these need not be read again. */
export class Tallies {
  readonly #port: RulesPort;
  readonly #marks = new Map<string, string>();

  constructor(port: RulesPort) {
    this.#port = port;
  }

  forget(): void {
    this.#marks.clear();
  }

  forgetSome(table: Table, chains: readonly string[]): void {
    for (const chain of chains) this.#marks.delete(keyOf(table, chain));
  }

  async news(table: Table, chains: readonly string[]): Promise<News> {
    const tallies = await this.#port.tally?.(table, chains);
    const known = (chain: string) => this.#marks.get(keyOf(table, chain));
    const isSame = (chain: string) => known(chain) !== undefined && known(chain) === tallies?.get(chain)?.mark;
    return {
      changed: new Set(chains.filter((chain) => !isSame(chain))),
      count: (chain) => tallies && (tallies.get(chain)?.rules ?? 0),
      wasKnown: (chain) => known(chain) !== undefined,
      confirm: (right) => {
        for (const chain of right) {
          const mark = tallies?.get(chain)?.mark;
          if (mark !== undefined) this.#marks.set(keyOf(table, chain), mark);
        }
      },
    };
  }
}

function keyOf(table: Table, chain: string): string {
  return `${table} ${chain}`;
}

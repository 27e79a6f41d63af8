import type { IPFamily } from "@fairlead/core";
import type { Rule, Table, TableState } from "@fairlead/netfilter";

/**
 * What this backend asks of the kernel, for one IP family. `@fairlead/kernel` has the client and the fake; both fit by
 * shape, so that this package imports neither.
 */
export interface IptablesPort {
  readonly family: IPFamily;
  /** Which kernel API the tools speak to: it decides how large one transaction may be. */
  readonly variant: "nft" | "legacy";
  /**
   * One `iptables-restore --noflush --counters`. The payload comes in pieces of text (some whole lines each), rendered
   * while it is read, so that a payload of many megabytes neither stands in memory nor holds the event loop; each of
   * its `*table … COMMIT` sections is one transaction, and the same table may come more than once. A payload that
   * throws half way ends the process without the COMMIT that is still out.
   *
   * @throws an Error whose `cause` carries argv, exit code and stderr; the table that failed is as it was
   */
  restore(payload: Iterable<string> | AsyncIterable<string>): Promise<void>;
  /** `iptables-save -t TABLE`, parsed; a table that does not exist has its built-in chains only. */
  save(table: Table): Promise<TableState>;
  /** `iptables-save -t TABLE` line by line as it comes: of a large table no more is kept than the reader needs. */
  saveLines(table: Table): AsyncIterable<string>;
  /** The names of the table's chains (`iptables-save` read as a stream; rules are not kept). */
  chains(table: Table): Promise<ReadonlySet<string>>;
  /**
   * `iptables -t TABLE -S CHAIN [NUMBER]`: the chain's rules, or the one with that number (from 1). Undefined: there is
   * no such chain.
   */
  list(table: Table, chain: string, number?: number): Promise<readonly Rule[] | undefined>;
  /**
   * The rules of several chains as `iptables -S` prints them, without `-A CHAIN `, with one process. A chain that is
   * not there is absent; so is one without a rule of that number (from 1) where a number is asked for.
   */
  texts(
    table: Table,
    asked: readonly { readonly chain: string; readonly number?: number }[],
  ): Promise<ReadonlyMap<string, readonly string[]>>;
  /**
   * What the kernel says of a table without its rules, which takes no time worth mentioning; absent: it cannot be
   * asked.
   */
  readonly glance?: (table: Table) => Promise<Glance | undefined>;
}

/** `state` is another text after a change of the table; `entries`: at least as many as there are rules. */
interface Glance {
  readonly state: string;
  readonly entries?: number;
}

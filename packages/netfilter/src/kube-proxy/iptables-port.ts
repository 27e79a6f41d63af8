import type { IPFamily } from "@fairlead/base";
import type { Rule, Table, TableState } from "../rule/rule.ts";

/** Text in pieces of some whole lines each, rendered while a tool reads it. */
export type Payload = Iterable<string> | AsyncIterable<string>;

/** What the kernel says of a table without its rules. */
export interface TableGlance {
  /** Another text after a change; of a large legacy table after one of the number or size of its rules. */
  readonly state: string;
  /** At least as many as the table has rules, and some more for each chain. */
  readonly entries?: number;
}

/**
 * The iptables of one IP family as a proxy needs it. `@fairlead/kernel` has the client and the fake; a backend declares
 * the part that it uses (`Pick`) and imports neither.
 */
export interface IptablesPort {
  /** iptables or ip6tables. */
  readonly family: IPFamily;
  /** Which kernel API the tools speak to (nf_tables or x_tables): it decides how large one transaction may be. */
  readonly variant: "nft" | "legacy";
  /**
   * One `iptables-restore --noflush --counters`. The payload is read while it is made, so that one of many megabytes
   * neither stands in memory nor holds the event loop; each of its `*table … COMMIT` sections is one transaction,
   * carried out in order, and the same table may come more than once. A payload that throws half way ends the process
   * without the COMMIT that is still out.
   *
   * @throws an Error whose `cause` carries argv, exit code and stderr; the sections before the one that failed count,
   * its table is as it was
   */
  restore(payload: Payload): Promise<void>;
  /** `iptables-save -t TABLE`, parsed; a table that does not exist has its built-in chains only. */
  save(table: Table): Promise<TableState>;
  /** The same of several tables, with one process. */
  saveTables(tables: readonly Table[]): Promise<ReadonlyMap<Table, TableState>>;
  /** `iptables-save -t TABLE` line by line as it comes: of a large table no more is kept than the reader needs. */
  saveLines(table: Table): AsyncIterable<string>;
  /** The names of the table's chains, built-in ones included (`iptables-save` read as a stream; rules are not kept). */
  chains(table: Table): Promise<ReadonlySet<string>>;
  /**
   * `iptables -t TABLE -S CHAIN [NUMBER]`: the chain's rules, or the one with that number (from 1, no rule beyond the
   * last). Undefined: there is no such chain.
   */
  list(table: Table, chain: string, number?: number): Promise<readonly Rule[] | undefined>;
  /**
   * The rules of several chains as `iptables -S` prints them, without `-A CHAIN `, with one process. A chain that is
   * not there is absent.
   */
  texts(table: Table, chains: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Takes no time worth mentioning, however large the table is. Undefined, or absent: the kernel cannot be asked. */
  readonly glance?: (table: Table) => Promise<TableGlance | undefined>;
}

import type { IPFamily } from "@fairlead/core";
import type { Rule, Table } from "@fairlead/netfilter";

/**
 * What this backend asks of the kernel's iptables, for one IP family. `@fairlead/kernel` has the client and the fake;
 * both fit by shape, so that this package imports neither.
 */
export interface RulesPort {
  readonly family: IPFamily;
  /**
   * One `iptables-restore --noflush --counters`. Each `*table … COMMIT` section of the payload is one transaction; a
   * table may come more than once.
   *
   * @throws an Error when a section was refused; those before it count
   */
  restore(payload: AsyncIterable<string>): Promise<void>;
  /** The names of the table's chains. */
  chains(table: Table): Promise<ReadonlySet<string>>;
  /** `iptables -t TABLE -S CHAIN`: the chain's rules. Undefined: there is no such chain. */
  list(table: Table, chain: string): Promise<readonly Rule[] | undefined>;
  /**
   * The rules of several chains as `iptables -S` prints them, without `-A CHAIN `, with one process. A chain that is
   * not there is absent.
   */
  texts(table: Table, asked: readonly { readonly chain: string }[]): Promise<ReadonlyMap<string, readonly string[]>>;
}

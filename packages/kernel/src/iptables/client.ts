import type { Rule, Table, TableState } from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import type { Input } from "../runner/runner.ts";
import type { Glance } from "./glance.ts";
import type { Variant } from "./variant.ts";

/**
 * The iptables of one family. Rules of others are read leniently: one that can't be read stands as its text (a match of
 * kind "unreadable"), and stops nothing. It fits the port that `@fairlead/backend-iptables` declares; so does
 * `FakeIptables`.
 */
export interface IptablesClient {
  readonly family: IPFamily;
  readonly variant: Variant;
  /**
   * One `iptables-restore --noflush --counters`. The payload is written while it is made; each of its `*table … COMMIT`
   * sections is one transaction, carried out in order. Sections before the one that failed stay, those after it are not
   * looked at.
   *
   * @throws IptablesError with the number and text of the line, its `cause` the CommandError; the table that failed is
   * as it was
   */
  restore(payload: Input): Promise<void>;
  /** `iptables-save -t TABLE`, parsed piece by piece; a table that does not exist has its built-in chains only. */
  save(table: Table): Promise<TableState>;
  /** The same of several tables, with one process: `iptables-save` of all that are there. */
  saveTables(tables: readonly Table[]): Promise<ReadonlyMap<Table, TableState>>;
  /** `iptables-save -t TABLE` line by line as it comes, for a reader that keeps little of it. */
  saveLines(table: Table): AsyncIterable<string>;
  /** The names of the table's chains, built-in ones included (`iptables-save` read as a stream; rules are not kept). */
  chains(table: Table): Promise<ReadonlySet<string>>;
  /**
   * `iptables -t TABLE -S CHAIN [NUMBER]`: the chain's rules, or the one with that number (from 1, none beyond the
   * last).
   * Undefined: there is no such chain.
   */
  list(table: Table, chain: string, number?: number): Promise<readonly Rule[] | undefined>;
  /**
   * The rules of several chains as `iptables -S` prints them, without `-A CHAIN `: one process, which reads the table
   * once. A chain that is not there is absent; so is one without a rule of that number where a number is asked for.
   */
  texts(table: Table, asked: readonly AskedChain[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** What the kernel says of a table without its rules; absent: it cannot be asked. */
  readonly glance?: Glance;
}

/** A chain to be listed, or one rule of it, by its number from 1. */
export interface AskedChain {
  readonly chain: string;
  readonly number?: number;
}

/** The chains that each table comes with. */
export const builtinChains: Readonly<Record<Table, readonly string[]>> = {
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  raw: ["PREROUTING", "OUTPUT"],
  security: ["INPUT", "FORWARD", "OUTPUT"],
};

import type { NftFamily } from "@fairlead/netfilter/nft";
import type { Journal } from "./journal.ts";
import type { FakeTable } from "./state.ts";

/** Name of the error with which the kernel refuses a message; undefined: it takes it. */
export type Refused = string | undefined;

/** What a message works on. */
export interface MessageContext {
  readonly tables: Map<string, FakeTable>;
  readonly journal: Journal;
  /** Names of the devices of this network namespace. */
  readonly devices: ReadonlySet<string>;
  /** By the fake's clock. */
  readonly now: number;
  /** The number of the next rule. */
  nextHandle(): bigint;
  /** Notes that the ways of packets have to be followed before the commit. */
  mustBeFollowed(table: FakeTable): void;
}

export function tableKey(family: NftFamily, name: string): string {
  return `${family} ${name}`;
}

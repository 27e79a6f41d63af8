/** Rules of iptables as data: commands, tables and chains of them. */

import type { Match } from "./matches.ts";
import type { NameMatch } from "./options.ts";
import type { Target } from "./targets.ts";

export type { ConntrackState, PortMatch, TCPFlagsMatch } from "./match-rows.ts";
export type { Match } from "./matches.ts";
export type { IPFamily, NameMatch } from "./options.ts";
export type { Target } from "./targets.ts";

/**
 * Typed iptables rules. Backends make them, tests compare them as data, `render` turns them into text at the very end
 * and `parse` reads what the kernel says back. The forms are those of iptables-save 1.8.
 *
 * Rules have one canonical form, the one the parsers give: absent instead of `negated: false` and instead of a /0
 * address, addresses and defaults written out as iptables-save writes them. `canonicalRule` makes it of any rule.
 */

export type Table = "filter" | "nat" | "mangle" | "raw" | "security";

/** `-s` or `-d`. */
export interface AddressMatch {
  /** `!`: every address but these. */
  readonly negated?: boolean;
  /** Canonical CIDR with its length, `10.96.0.1/32`. */
  readonly cidr: string;
}

/** One rule without its chain. Absent fields match everything; a rule without a target only counts. */
export interface Rule {
  /** Of the sender. */
  readonly source?: AddressMatch;
  /** Of where the packet goes. */
  readonly destination?: AddressMatch;
  /** The interface that it came in by; `eth+` for all whose name begins so. */
  readonly inInterface?: NameMatch;
  /** The interface that it leaves by, in the same way. */
  readonly outInterface?: NameMatch;
  /** Lower case: tcp, udp, sctp, icmp, … */
  readonly protocol?: NameMatch;
  /** `-f`: second and further fragments. */
  readonly fragment?: { readonly negated: boolean };
  /** In the order of the rule's text, which is the order in which the kernel asks them. */
  readonly matches: readonly Match[];
  /** What the rule does; absent: it only counts. */
  readonly target?: Target;
}

/** What a restore payload says to one table, in order. */
export type Command =
  /** `:NAME - [0:0]`, creates the chain or flushes it; with a policy for a built-in one. */
  | { readonly kind: "chain"; readonly chain: string; readonly policy?: "ACCEPT" | "DROP" }
  | { readonly kind: "append"; readonly chain: string; readonly rule: Rule }
  /** `-I`; position counts from 1. */
  | { readonly kind: "insert"; readonly chain: string; readonly position: number; readonly rule: Rule }
  | { readonly kind: "delete"; readonly chain: string; readonly rule: Rule }
  | { readonly kind: "flush"; readonly chain: string }
  | { readonly kind: "delete-chain"; readonly chain: string };

/** What a payload does to one table in one transaction. */
export interface TableCommands {
  /** The table. */
  readonly table: Table;
  /** In their order. */
  readonly commands: readonly Command[];
}

/** Rules that may be made while they are read, each time anew; how many they are is known before. */
export interface RuleList extends Iterable<Rule> {
  /** How many rules there are. */
  readonly length: number;
}

/**
 * All rules of a chain at once: as an `append` for each of them, after a `chain` where `make` says so; cheaper than
 * those.
 */
export interface ChainFill {
  readonly kind: "fill";
  /** The chain's name. */
  readonly chain: string;
  /** All of its rules. */
  readonly rules: RuleList;
  /** Whether the chain is made, or flushed, before. */
  readonly make: boolean;
}

/** What a payload says to one table in a transaction; the commands may be made while they are written. */
export interface PayloadSection {
  /** The table. */
  readonly table: Table;
  /** In their order. */
  readonly commands: Iterable<Command | ChainFill>;
}

/** What the renderer takes: the commands may be made while they are written. */
export interface CommandSource {
  /** The table. */
  readonly table: Table;
  /** In their order. */
  readonly commands: Iterable<Command>;
}

/** A table as iptables-save prints it. */
export interface TableState {
  /** Which table it is. */
  readonly table: Table;
  /** By their names, in the order of the save. */
  readonly chains: ReadonlyMap<string, ChainState>;
}

/** A chain as iptables-save prints it. */
export interface ChainState {
  /** The chain's name. */
  readonly name: string;
  /** Only built-in chains have one. */
  readonly policy?: "ACCEPT" | "DROP";
  /** In their order. */
  readonly rules: readonly Rule[];
}

/** A rule set of one family, as one iptables-save of all tables gives it. */
export type RuleSet = ReadonlyMap<Table, TableState>;

/** xt_comment holds 256 bytes with the closing NUL. */
const COMMENT_BYTES = 255;

/**
 * A comment with nothing in it but printable ASCII without quotes and backslashes: the names in it come from API
 * objects, and whatever they hold must stay inside the comment.
 */
export function comment(text: string): Match {
  return { kind: "comment", text: text.replace(/[^\x20-\x7e]|["\\]/g, "?").slice(0, COMMENT_BYTES) };
}

/** `-j CHAIN`: goes to a chain and comes back at its end. */
export function jump(chain: string): Target {
  return { kind: "jump", chain };
}

/** The chains that each table comes with. */
export const BUILTIN_CHAINS: Readonly<Record<Table, readonly string[]>> = {
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  raw: ["PREROUTING", "OUTPUT"],
  security: ["INPUT", "FORWARD", "OUTPUT"],
};

/**
 * Typed iptables rules. Backends make them, tests compare them as data, `render` turns them into text at the very end
 * and `parse` reads what the kernel says back. The forms are those of iptables-save 1.8.
 *
 * Rules have one canonical form, the one the parsers give: absent instead of `negated: false` and instead of a /0 address,
 * addresses and defaults written out as iptables-save writes them. `canonicalRule` makes it of any rule.
 */

export type IPFamily = "IPv4" | "IPv6";

export type Table = "filter" | "nat" | "mangle" | "raw" | "security";

/** States of `-m conntrack --ctstate`; SNAT and DNAT stand for the entry's status bits (xt_conntrack.h). */
export type ConntrackState = "INVALID" | "NEW" | "RELATED" | "ESTABLISHED" | "UNTRACKED" | "SNAT" | "DNAT";

export interface AddressMatch {
  readonly negated?: boolean;
  /** Canonical CIDR with its length, `10.96.0.1/32`. */
  readonly cidr: string;
}

export interface NameMatch {
  readonly negated?: boolean;
  readonly value: string;
}

/** Ports of a tcp, udp or sctp match; ranges are inclusive. */
export interface PortMatch {
  readonly negated?: boolean;
  readonly from: number;
  readonly to: number;
}

export type Match =
  | { readonly kind: "comment"; readonly text: string }
  | {
      /** `-m tcp` and its kin; without ports it matches the protocol alone. */
      readonly kind: "tcp" | "udp" | "sctp";
      readonly sport?: PortMatch;
      readonly dport?: PortMatch;
    }
  /** Canonical order of the states: as `ConntrackState` lists them. */
  | {
      readonly kind: "conntrack";
      /** `-m state --state`, the old name of the same question; absent: `-m conntrack --ctstate`. */
      readonly module?: "state";
      readonly negated?: boolean;
      readonly states: readonly ConntrackState[];
    }
  | { readonly kind: "mark"; readonly negated?: boolean; readonly value: number; readonly mask: number }
  | {
      readonly kind: "addrtype";
      readonly srcType?: NameMatch;
      readonly dstType?: NameMatch;
    }
  /** Probability as the kernel gives it back, see `statisticProbability`. */
  | { readonly kind: "statistic"; readonly mode: "random"; readonly probability: string }
  | {
      readonly kind: "recent";
      readonly op: "set" | "rcheck";
      readonly name: string;
      /** rcheck only: seconds, and whether older entries are reaped. */
      readonly seconds?: number;
      readonly reap?: boolean;
      /** `255.255.255.255` or the IPv6 mask of the same length; as iptables-save prints it. */
      readonly mask?: string;
      readonly side: "rsource" | "rdest";
    }
  | { readonly kind: "nfacct"; readonly name: string }
  | {
      readonly kind: "set";
      readonly negated?: boolean;
      readonly name: string;
      readonly flags: readonly ("src" | "dst")[];
    }
  /** `--physdev-is-in` and its kin: whether the packet came in, goes out, or both by a bridge's port. */
  | { readonly kind: "physdev"; readonly negated?: boolean; readonly is: "in" | "out" | "bridged" }
  /** The connection belongs to that virtual server of IPVS (`-m ipvs --vproto --vaddr --vport`). */
  | {
      readonly kind: "ipvs";
      readonly protocol: "tcp" | "udp" | "sctp";
      /** Canonical address. */
      readonly address: string;
      readonly port: number;
    }
  /** A match this package has no type for, kept word for word; `args` are the arguments after `-m module`. */
  | { readonly kind: "unknown"; readonly module: string; readonly args: readonly string[] }
  /** Stands for a whole rule of somebody else that can't be read: its text without `-A CHAIN `. It can't be written. */
  | { readonly kind: "unreadable"; readonly text: string };

export type Target =
  | { readonly kind: "jump" | "goto"; readonly chain: string }
  | { readonly kind: "accept" | "drop" | "return" }
  | { readonly kind: "reject"; readonly with: string }
  | { readonly kind: "dnat"; readonly to: string; readonly random?: boolean; readonly persistent?: boolean }
  | {
      readonly kind: "masquerade";
      readonly toPorts?: string;
      readonly random?: boolean;
      readonly randomFully?: boolean;
    }
  | { readonly kind: "redirect"; readonly toPorts?: string; readonly random?: boolean }
  /** `MARK --set-xmark value/mask`: mark = (mark & ~mask) ^ value. */
  | { readonly kind: "mark"; readonly value: number; readonly mask: number }
  /** A target this package has no type for, kept word for word. */
  | { readonly kind: "unknown"; readonly name: string; readonly args: readonly string[] };

/** One rule without its chain. Absent fields match everything; a rule without a target only counts. */
export interface Rule {
  readonly source?: AddressMatch;
  readonly destination?: AddressMatch;
  readonly inInterface?: NameMatch;
  readonly outInterface?: NameMatch;
  /** Lower case: tcp, udp, sctp, icmp, … */
  readonly protocol?: NameMatch;
  readonly fragment?: { readonly negated: boolean };
  /** In the order of the rule's text, which is the order in which the kernel asks them. */
  readonly matches: readonly Match[];
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

export interface TableCommands {
  readonly table: Table;
  readonly commands: readonly Command[];
}

/** All rules of a chain at once: as an `append` for each of them, after a `chain` where `make` says so; cheaper than those. */
export interface ChainFill {
  readonly kind: "fill";
  readonly chain: string;
  readonly rules: readonly Rule[];
  readonly make: boolean;
}

/** What a payload says to one table in a transaction; the commands may be made while they are written. */
export interface PayloadSection {
  readonly table: Table;
  readonly commands: Iterable<Command | ChainFill>;
}

/** What the renderer takes: the commands may be made while they are written. */
export interface CommandSource {
  readonly table: Table;
  readonly commands: Iterable<Command>;
}

/** A table as iptables-save prints it. */
export interface TableState {
  readonly table: Table;
  readonly chains: ReadonlyMap<string, ChainState>;
}

export interface ChainState {
  readonly name: string;
  /** Built-in chains alone have one. */
  readonly policy?: "ACCEPT" | "DROP";
  readonly rules: readonly Rule[];
}

/** A rule set of one family, as one iptables-save of all tables gives it. */
export type RuleSet = ReadonlyMap<Table, TableState>;

import type { IPFamily } from "@fairlead/core";
import type {
  Rule,
  ServerConnections,
  SetState,
  Table,
  TableState,
  VirtualServerKey,
  VirtualServerState,
} from "@fairlead/netfilter";

/**
 * What this backend asks of the kernel. `@fairlead/kernel` has the clients and the fakes; both fit by shape, so that
 * this package imports neither. Payloads are text in pieces (whole lines each), rendered while they are read.
 */
export type Payload = Iterable<string> | AsyncIterable<string>;

/** The virtual servers of this network namespace, both families. */
export interface ServersPort {
  /** `ipvsadm --save -n`, server by server. */
  save(): AsyncIterable<VirtualServerState>;
  /** `ipvsadm --list -n`: the connections of these servers' destinations; servers that are not there are left out. */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * One `ipvsadm --restore`. No transaction: the kernel takes line by line, lines that it refuses are skipped and told
   * on stderr, and the exit code is 0 all the same.
   *
   * @throws an Error when the process failed or said anything on stderr; the lines before and after a refused one may
   * count
   */
  restore(payload: Payload): Promise<void>;
}

/** The ipsets of this network namespace, both families. */
export interface SetsPort {
  /** `ipset save`, set by set; of these names only. */
  save(names: Iterable<string>): AsyncIterable<SetState>;
  /**
   * One `ipset -exist restore`: what is there already, or gone, is no error. No transaction.
   *
   * @throws an Error for the first line that fails; the lines before it count, those after it do not
   */
  restore(payload: Payload): Promise<void>;
}

/** Devices and their addresses. */
export interface LinksPort {
  /**
   * All addresses of a device (both families, the device's own link-local ones too); undefined: there is no such
   * device.
   */
  addresses(device: string): Promise<ReadonlySet<string> | undefined>;
  /**
   * One `ip -batch -`. No transaction.
   *
   * @throws an Error for the first line that fails; the lines before it count, those after it do not
   */
  batch(payload: Payload): Promise<void>;
}

/** The iptables of one family; the port of @fairlead/backend-iptables fits. */
export interface RulesPort {
  readonly family: IPFamily;
  /** One `iptables-restore --noflush --counters`; each table of it is a transaction. */
  restore(payload: Payload): Promise<void>;
  /** `iptables-save -t TABLE`, parsed. */
  save(table: Table): Promise<TableState>;
  /** The same of several tables, with one process; absent: one after the other. */
  saveTables?(tables: readonly Table[]): Promise<ReadonlyMap<Table, TableState>>;
  /** The names of the table's chains. */
  chains(table: Table): Promise<ReadonlySet<string>>;
  /** `iptables -t TABLE -S CHAIN`: the chain's rules. Undefined: there is no such chain. */
  list(table: Table, chain: string): Promise<readonly Rule[] | undefined>;
  /**
   * What the kernel says of a table without a listing: `state` is another text after a change (of a large legacy table,
   * one of the number or size of its rules); `entries` is the number of rules and chains, or somewhat more. Undefined,
   * or absent: it cannot be asked.
   */
  glance?(table: Table): Promise<{ readonly state: string; readonly entries?: number } | undefined>;
}

/** All of it, for one family. */
export interface IpvsPort {
  readonly servers: ServersPort;
  readonly sets: SetsPort;
  readonly links: LinksPort;
  readonly rules: RulesPort;
}

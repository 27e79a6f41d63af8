import type {
  IptablesPort,
  Payload,
  ServerConnections,
  SetState,
  VirtualServerKey,
  VirtualServerState,
} from "@fairlead/netfilter";

// What this backend asks of the kernel. `@fairlead/kernel` has the clients and the fakes; both fit by shape, so that
// this package imports neither.

/** The virtual servers of this network namespace, both families. */
export interface ServersPort {
  /** `ipvsadm --save -n`, server by server. */
  save(): AsyncIterable<VirtualServerState>;
  /** `ipvsadm --list -n`: the connections of these servers' destinations; servers without one may be left out. */
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

/** The iptables of one family. Without `saveTables` one table is read after the other. */
export type RulesPort = Pick<IptablesPort, "family" | "restore" | "save" | "chains" | "list" | "glance"> &
  Partial<Pick<IptablesPort, "saveTables">>;

/** All of it, for one family. */
export interface IpvsPort {
  readonly servers: ServersPort;
  readonly sets: SetsPort;
  readonly links: LinksPort;
  readonly rules: RulesPort;
}

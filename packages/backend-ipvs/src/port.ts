import type {
  IptablesPort,
  LinkCommand,
  ServerCommand,
  ServerConnections,
  SetCommand,
  SetState,
  VirtualServerKey,
  VirtualServerState,
} from "@fairlead/netfilter";

// What this backend asks of the kernel. `@fairlead/kernel` has the clients and the fakes; both fit by shape, so that
// this package imports neither.

type Turn = () => Promise<void>;

/** The virtual servers of this network namespace, both families. */
export interface ServersPort {
  /** `ipvsadm --save -n`, server by server. */
  save(): AsyncIterable<VirtualServerState>;
  /** `ipvsadm --list -n`: the connections of these servers' destinations; servers without one may be left out. */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * Does these commands, one after the other. No transaction: what the kernel refuses is skipped.
   *
   * @param turn gives the event loop its turn now and then
   * @throws RefusedCommands when the kernel refused some; all others count
   * @throws another Error when a tool refused one; those before and after it may count
   */
  change(commands: Iterable<ServerCommand>, turn: Turn): Promise<void>;
}

/** The ipsets of this network namespace, both families. */
export interface SetsPort {
  /** `ipset save`, set by set; of these names only. */
  save(names: Iterable<string>): AsyncIterable<SetState>;
  /**
   * Does these commands, one after the other: what is there already, or gone, is no error. No transaction.
   *
   * @throws RefusedCommands when the kernel refused some; all others count
   * @throws another Error for the first command that fails; those before it count, those after it may
   */
  change(commands: readonly SetCommand[], turn: Turn): Promise<void>;
}

/** Devices and their addresses. */
export interface LinksPort {
  /**
   * All addresses of a device (both families, the device's own link-local ones too); undefined: there is no such
   * device.
   */
  addresses(device: string): Promise<ReadonlySet<string> | undefined>;
  /**
   * Does these commands, one after the other. No transaction.
   *
   * @throws RefusedCommands when the kernel refused some; all others count
   * @throws another Error for the first command that fails; those before it count, those after it may
   */
  change(commands: Iterable<LinkCommand>, turn: Turn): Promise<void>;
}

/** The iptables of one family. Without `saveTables` one table is read after the other. */
export type RulesPort = Pick<IptablesPort, "family" | "variant" | "restore" | "save" | "chains" | "list" | "glance"> &
  Partial<Pick<IptablesPort, "saveTables">>;

/** All of it, for one family. */
export interface IpvsPort {
  /** Virtual servers and their destinations. */
  readonly servers: ServersPort;
  /** The ipsets that the mode's rules match on. */
  readonly sets: SetsPort;
  /** The service device, kube-ipvs0, and its addresses. */
  readonly links: LinksPort;
  /** The rules of iptables that send packets to the servers, masquerade and filter. */
  readonly rules: RulesPort;
}

import type { ServerCommand, ServerConnections, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";
import type { Turn } from "../runner/commands.ts";

/** Seconds; 0 or absent leaves one as it is. */
export interface IpvsTimeouts {
  /** Of established TCP connections. */
  readonly tcp?: number;
  /** Of TCP connections after a FIN. */
  readonly tcpFin?: number;
  /** Of UDP flows. */
  readonly udp?: number;
}

/** The virtual servers of this network namespace, of both families. Those by firewall mark are passed over. */
export interface IpvsadmClient {
  /**
   * `ipvsadm --save -n`, server by server as it is read.
   *
   * @throws CommandError when the tool is missing, not permitted, or the kernel has no IPVS
   */
  save(): AsyncIterable<VirtualServerState>;
  /**
   * `ipvsadm --list -n`: the connections of these servers' destinations; servers that are not there are left out, and
   * those without a destination may be. One process for all, or for each of a few.
   *
   * @throws CommandError as `save`
   */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * Does these commands, one after the other. No transaction: what the kernel refuses is skipped; a command that
   * ipvsadm itself would refuse is the last one.
   *
   * @param turn gives the event loop its turn now and then; default `nextTurn`
   * @throws CommandError when `ipvsadm --restore` failed or said anything on stderr; the commands before and after a
   *   refused one may count
   * @throws Error that names the commands that were refused, where they went by netlink; all others count
   */
  change(commands: Iterable<ServerCommand>, turn?: Turn): Promise<void>;
  /** `ipvsadm --set`. */
  setTimeouts(timeouts: IpvsTimeouts): Promise<void>;
}

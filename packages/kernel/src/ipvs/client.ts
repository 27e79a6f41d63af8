import type { ServerConnections, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";
import type { Input } from "../runner/runner.ts";

/** Seconds; 0 or absent leaves one as it is. */
export interface IpvsTimeouts {
  readonly tcp?: number;
  readonly tcpFin?: number;
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
   * One `ipvsadm --restore`. No transaction: lines that the kernel refuses are skipped, told on stderr, and the tool
   * exits with 0 all the same; a line that the tool itself refuses ends it there.
   *
   * @throws CommandError when it failed or said anything on stderr; the lines before and after a refused one may count
   */
  restore(payload: Input): Promise<void>;
  /** `ipvsadm --set`. */
  setTimeouts(timeouts: IpvsTimeouts): Promise<void>;
}

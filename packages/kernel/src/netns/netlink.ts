import type { OpenListening } from "../netlink/listening.ts";
import { type OpenNetlink, type OpenTransactions, socketsIn } from "../netlink/socket.ts";
import type { NetworkNamespace } from "./namespace.ts";

/** Netlink sockets in a network namespace, for the `open` and `listen` of clients. */
export interface NetlinkSockets {
  /** For devices and their addresses. */
  readonly route: OpenNetlink;
  /** For conntrack and ipsets. */
  readonly netfilter: OpenNetlink;
  /** For virtual servers. */
  readonly generic: OpenNetlink;
  /** For transactions of nf_tables. */
  readonly transactions: OpenTransactions;
  /** For what is told of conntrack and nf_tables. */
  readonly listening: OpenListening;
  /** For what is told of devices and their addresses. */
  readonly routeListening: OpenListening;
}

/** How netlink is reached in a namespace, by a process with the rights to enter it: root, where root has made it. */
export function netlinkIn({ pid }: Pick<NetworkNamespace, "pid">): NetlinkSockets {
  return socketsIn(`/proc/${pid}/ns/net`);
}

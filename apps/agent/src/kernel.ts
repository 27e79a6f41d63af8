/** All that the agent asks of the kernel, and the part of it that needs no root. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isUnspecified } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type {
  Conntrack,
  DeviceFollower,
  FlowtableTest,
  IpsetClient,
  IpvsadmClient,
  LinksClient,
  Modules,
  Nfacct,
  NftablesClient,
  NodeAddress,
  NodeAddresses,
  Routing,
  Sysctl,
  Tracking,
} from "@fairlead/kernel";
import type { IptablesPort } from "@fairlead/netfilter";

/** All that the agent asks of the kernel. Production has the clients of `@fairlead/kernel`, tests its fakes. */
export interface Kernel {
  /**
   * The iptables of a family.
   *
   * @throws IptablesError when the tools are missing or not permitted
   */
  iptables(family: IPFamily): Promise<IptablesPort>;
  /**
   * The iptables of a family in each variant that this node has something in.
   *
   * @throws IptablesError when the tools are missing or not permitted
   */
  iptablesInUse(family: IPFamily): Promise<readonly IptablesPort[]>;
  /**
   * nf_tables of both families.
   *
   * @throws Error when it cannot be reached by netlink
   */
  nftables(): Promise<NftablesClient>;
  /** What ipvs mode programs alongside iptables, for both families. */
  readonly ipvs: { readonly servers: IpvsadmClient; readonly sets: IpsetClient; readonly links: LinksClient };
  readonly modules: Modules;
  readonly addresses: NodeAddresses;
  readonly devices: DeviceFollower;
  /** Sends packets through a flowtable of this kernel, in network namespaces that are made for it. */
  testFlowtable(): Promise<FlowtableTest>;
  readonly routing: Routing;
  readonly conntrack: Conntrack;
  /** What connection tracking has, for what only reads. */
  tracking(): Promise<Pick<Tracking, "list">>;
  readonly nfacct: Nfacct;
  readonly sysctl: Sysctl;
  /**
   * Removes the tables of nftables mode, kube-proxy's or ours, and names them.
   *
   * @param serviceProxyName whose; empty: the first proxy's
   * @throws Error when one cannot be deleted
   */
  removeNftTables(serviceProxyName: string): Promise<readonly string[]>;
  /** Whether there is a table of nf_tables in either family; undefined: this kernel does not say. */
  hasNftTable(name: string): Promise<boolean | undefined>;
  /** The address that packets to elsewhere would leave from; undefined: there is no route. */
  sourceAddress(family: IPFamily): Promise<string | undefined>;
}

/**
 * The same kernel, whose iptables and nf_tables are opened once: opening iptables again would find out once more which
 * variant the host uses, by reading all the rules that there are by then. What failed is tried again.
 */
export function openedOnce(kernel: Kernel): Kernel {
  const iptables = atMostOnce(kernel.iptables);
  const nftables = atMostOnce((_: "both") => kernel.nftables());
  return { ...kernel, iptables, nftables: () => nftables("both") };
}

/**
 * What of the kernel an agent needs that programs nothing: it runs without root, without tools and alongside other
 * agents.
 */
export interface LocalKernel
  extends Pick<Kernel, "addresses" | "sourceAddress" | "nfacct">,
    Partial<Pick<Kernel, "tracking">> {
  /** Load balancers probe this node by the health-check ports of its services. */
  readonly probed?: true;
}

const LOOPBACK: readonly NodeAddress[] = [
  { family: "IPv4", address: "127.0.0.1", prefixLength: 8, interface: "lo", scope: "host", up: true },
  { family: "IPv6", address: "::1", prefixLength: 128, interface: "lo", scope: "host", up: true },
];

export function localKernel(): LocalKernel {
  return {
    addresses: {
      list: async () => LOOPBACK,
      async *watch({ signal }) {
        yield LOOPBACK;
        if (!signal.aborted) await once(signal, "abort");
      },
    },
    sourceAddress: async () => undefined,
    nfacct: {
      ensure: async () => ({ ok: false, reason: "nothing is counted without rules" }),
      read: async () => undefined,
    },
  };
}

/**
 * The address that the kernel would send from by its default route; undefined: there is no such route. Connecting a UDP
 * socket asks the routing table and sends nothing.
 */
export async function sourceAddress(family: IPFamily): Promise<string | undefined> {
  const { type, address } = ELSEWHERE[family];
  const socket = createSocket(type);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  // `connect` calls back on failure, too; the events distinguish them.
  socket.once("error", () => resolve(undefined));
  socket.once("connect", () => resolve(socket.address().address));
  socket.connect(9, address);
  const found = await promise;
  socket.close();
  return found === undefined || isUnspecified(found) ? undefined : found;
}

/** Addresses for documentation (RFC 5737, RFC 3849): they follow the default route. */
const ELSEWHERE: Readonly<Record<IPFamily, { type: "udp4" | "udp6"; address: string }>> = {
  IPv4: { type: "udp4", address: "192.0.2.1" },
  IPv6: { type: "udp6", address: "2001:db8::1" },
};

function atMostOnce<K, T>(open: (key: K) => Promise<T>): (key: K) => Promise<T> {
  const opened = new Map<K, Promise<T>>();
  return (key) => {
    const known = opened.get(key);
    if (known !== undefined) return known;
    const opening = open(key);
    opened.set(key, opening);
    opening.catch(() => opened.delete(key));
    return opening;
  };
}

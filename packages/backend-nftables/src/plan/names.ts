import type { PlanEndpoint, Protocol } from "@fairlead/core";
import { hashedName } from "@fairlead/netfilter";

/**
 * The table of either family: kube-proxy's, or a table alongside it for the services of one service proxy name.
 *
 * @param serviceProxyName empty: the services without that label
 */
export function tableName(serviceProxyName: string): string {
  return serviceProxyName === "" ? "kube-proxy" : `fairlead-${serviceProxyName}`;
}

/** The service proxy name of which a table is; undefined: it is none of an agent with a name. */
export function instanceOfTable(name: string): string | undefined {
  return /^fairlead-(.+)$/.exec(name)?.[1];
}

/** Where packets are dropped, but for those in the middle of a TCP connection. */
export const RESET_OR_DROP = "reset-or-drop-chain";

/** NFT_NAME_MAXLEN without its zero byte, and kube-proxy's room for a prefix. */
const LONGEST_BASE = 240;

/**
 * The chain of a service port's source ranges, named as kube-proxy names it: the slash tells kube-proxy that the chain
 * belongs to a service, so that it can remove it. What names cannot have becomes `_`; the hash keeps them apart.
 *
 * @param name `namespace/name:port`, without the colon where the port has no name
 */
export function firewallChain(name: string, protocol: string): string {
  return `firewall-${hashedAndCut(pathOf(name, protocol))}`;
}

/** Where kube-proxy remembers the clients of an endpoint of a service port: their addresses. */
export function kubeProxyAffinitySet(name: string, protocol: string, { address, port }: PlanEndpoint): string {
  return `affinity-${hashedAndCut(`${pathOf(name, protocol)}__${address.replaceAll(":", ".")}/${port}`)}`;
}

/** kube-proxy's `namespace/name/protocol/port`. */
function pathOf(name: string, protocol: string): string {
  const colon = `${name}:`.indexOf(":");
  return `${name.slice(0, colon)}/${protocol.toLowerCase()}/${name.slice(colon + 1)}`;
}

/** kube-proxy's hashAndTruncate. */
function hashedAndCut(text: string): string {
  const base = `${hashedName("", text).slice(0, 8)}-${text}`.replace(/[^\w./-]/g, "_");
  return base.length > LONGEST_BASE ? `${base.slice(0, LONGEST_BASE - 3)}...` : base;
}

/** kube-proxy's: where a protocol's node ports on loopback addresses are counted and refused. */
export function loopbackRefusalChain(protocol: Protocol): string {
  return `localhost-nodeport-reject-${protocol.toLowerCase()}`;
}

/** kube-proxy's map that leads there. */
export const LOOPBACK_REFUSALS = "localhost-nodeport-reject-ports";

/** Bytes, NFTNL_UDATA_COMMENT_MAXLEN: the zero byte behind it does not count. */
const LONGEST_COMMENT = 128;

/** A comment that `nft` prints and reads again: nothing ends its quotes or its line, and it is as long as it may be. */
export function commentText(text: string): string {
  return text.replace(/[^\x20-\x7e]|["\\]/g, "_").slice(0, LONGEST_COMMENT);
}

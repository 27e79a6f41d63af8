import { hashedName } from "@fairlead/netfilter";

/** kube-proxy's table of either family. */
export const TABLE = "kube-proxy";

/** NFT_NAME_MAXLEN without its zero byte, and kube-proxy's room for a prefix. */
const LONGEST_BASE = 240;

/**
 * The chain of a service port's source ranges, named as kube-proxy names it: the slash tells kube-proxy that the chain
 * belongs to a service, so that it can remove it. What names cannot have becomes `_`; the hash keeps them apart.
 *
 * @param name `namespace/name:port`, without the colon where the port has no name
 */
export function firewallChain(name: string, protocol: string): string {
  const colon = `${name}:`.indexOf(":");
  const text = `${name.slice(0, colon)}/${protocol.toLowerCase()}/${name.slice(colon + 1)}`;
  const base = `${hashedName("", text).slice(0, 8)}-${text}`.replace(/[^\w./-]/g, "_");
  return `firewall-${base.length > LONGEST_BASE ? `${base.slice(0, LONGEST_BASE - 3)}...` : base}`;
}

/** A comment that `nft` can print and read again: nothing that ends its quotes or its line. */
export function commentText(text: string): string {
  return text.replace(/[^\x20-\x7e]|["\\]/g, "_");
}

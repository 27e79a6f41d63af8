export {
  createNamespace,
  type NamespaceOptions,
  type NamespaceSupport,
  type NetworkNamespace,
  namespaceSupport,
} from "./namespace.ts";
export { type NetlinkSockets, netlinkIn } from "./netlink.ts";

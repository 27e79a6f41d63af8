export {
  createNamespace,
  inside,
  type NamespaceOptions,
  type NamespaceSupport,
  type NetlinkSockets,
  type NetworkNamespace,
  namespaceSupport,
  netlinkIn,
} from "./namespace.ts";

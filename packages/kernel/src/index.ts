export { createNodeAddresses, type NodeAddressesOptions } from "./address-monitor.ts";
export type { NodeAddress, NodeAddresses, ServiceDeviceChange, WatchOptions } from "./addresses.ts";
export { type ConntrackOptions, createConntrack } from "./conntrack/conntrack.ts";
export type {
  Choose,
  Connection,
  ConnectionEvent,
  Conntrack,
  ConntrackFlow,
  Direction,
  Tracking,
  Volume,
} from "./conntrack/flows.ts";
export { createTrackingTools, listConnections, openTracking, type TrackingOptions } from "./conntrack/tracking.ts";
export {
  createDeviceFollower,
  type DeviceFollower,
  type DeviceFollowerOptions,
  type FollowedDevices,
  type NetworkDevice,
} from "./devices.ts";
export type { IPFamily, Protocol } from "./family.ts";
export { type FlowtableTest, runFlowtableTest } from "./flowtable-test.ts";
export { parseIpJson } from "./ip-json.ts";
export { createIpset, type IpsetClient, type IpsetOptions } from "./ipset.ts";
export { IptablesError, type IptablesErrorDetails, type IptablesErrorKind } from "./iptables/error.ts";
export { type IptablesClient, type IptablesOptions, openIptables, openIptablesInUse } from "./iptables/open.ts";
export {
  areTablesThere,
  type ChainsThere,
  createChainsThere,
  createGlance,
  createRuleCounts,
  type Glance,
  type RuleCounts,
  type TablesThere,
  type Variant,
} from "./iptables/tables-there.ts";
export { detectVariant } from "./iptables/tools.ts";
export { createIpvsadm, type IpvsadmClient, type IpvsadmOptions, type IpvsTimeouts } from "./ipvs.ts";
export { createLinks, type LinksClient, type LinksOptions } from "./links.ts";
export { releaseMemory } from "./memory.ts";
export {
  createModules,
  isAtLeast,
  type KernelVersion,
  kernelVersion,
  type ModuleResult,
  type Modules,
  type ModulesOptions,
} from "./modules.ts";
export { NativeCodeError, NetlinkError, openRouteListening } from "./netlink/listening.ts";
export { openGenericSocket, openNetfilterSocket, openRouteSocket } from "./netlink/socket.ts";
export { createNfacct, type Nfacct, type NfacctCount, type NfacctResult } from "./nfacct.ts";
export { NftablesError } from "./nftables/exchange.ts";
export { type NftTableName, nftTableNames, readNftTables } from "./nftables/foreign.ts";
export { type NftablesClient, type NftablesOptions, openNftables } from "./nftables/open.ts";
export { isNftTableThere } from "./nftables/read.ts";
export type { NftablesNews, NftablesWatchOptions, TouchedTable } from "./nftables/watch.ts";
export {
  acquireNodeLock,
  type LockHolder,
  type NodeLock,
  NodeLockHeldError,
  type NodeLockOptions,
  nodeLockProcess,
} from "./node-lock.ts";
export { createRunner, type ProcessRunnerOptions } from "./process-runner.ts";
export {
  type KernelReader,
  openKernelReader,
  readingOnly,
  readingRunner,
  readsLinks,
  readsNftables,
  readsServers,
  readsSets,
  WritesRefused,
} from "./reading.ts";
export {
  createRouting,
  type MarkRule,
  type RouteEntry,
  type Routing,
  type RoutingCommand,
  type RoutingOptions,
  type RoutingState,
  type RoutingWatchOptions,
  type TableRoute,
} from "./routes.ts";
export {
  type Argv,
  CommandError,
  type CommandFailure,
  type FailureReason,
  type Input,
  lines,
  type Runner,
  type RunOptions,
  type RunResult,
  type StreamOptions,
} from "./runner.ts";
export { createSysctl, type Sysctl, type SysctlResult } from "./sysctl.ts";

export type { NodeAddress, NodeAddresses, ServiceDeviceChange, WatchOptions } from "./addresses/addresses.ts";
export { createNodeAddresses, type NodeAddressesOptions } from "./addresses/open.ts";
export type { Connection, ConnectionEvent, Volume } from "./conntrack/connection.ts";
export { listConnections } from "./conntrack/connections.ts";
export type { Choose, Conntrack, ConntrackFlow } from "./conntrack/conntrack.ts";
export { type ConntrackOptions, createConntrack } from "./conntrack/open.ts";
export { openTracking, type TrackingOptions } from "./conntrack/open-tracking.ts";
export type { Direction } from "./conntrack/parse-flow.ts";
export { createTrackingTools } from "./conntrack/tools-tracking.ts";
export type { Tracking } from "./conntrack/tracking.ts";
export type { IPFamily, Protocol } from "./family.ts";
export { type FlowtableTest, runFlowtableTest } from "./flowtable-test/run.ts";
export type { IpsetClient } from "./ipset/client.ts";
export { createIpset, type IpsetOptions } from "./ipset/open.ts";
export { type ChainsThere, createChainsThere } from "./iptables/chains-there.ts";
export type { IptablesClient } from "./iptables/client.ts";
export { detectVariant } from "./iptables/detect.ts";
export { IptablesError, type IptablesErrorDetails, type IptablesErrorKind } from "./iptables/error.ts";
export { createGlance, type Glance } from "./iptables/glance.ts";
export { type IptablesOptions, openIptables, openIptablesInUse } from "./iptables/open.ts";
export { areTablesThere, type TablesThere } from "./iptables/tables-there.ts";
export type { Variant } from "./iptables/variant.ts";
export type { IpvsadmClient, IpvsTimeouts } from "./ipvs/client.ts";
export { createIpvsadm, type IpvsadmOptions } from "./ipvs/open.ts";
export type { LinksClient } from "./links/client.ts";
export {
  createDeviceFollower,
  type DeviceFollower,
  type DeviceFollowerOptions,
  type FollowedDevices,
  type NetworkDevice,
} from "./links/devices.ts";
export { createLinks, type LinksOptions } from "./links/open.ts";
export type { LockHolder } from "./lock/holder.ts";
export { nodeLockProcess } from "./lock/lock-process.ts";
export { acquireNodeLock, type NodeLock, NodeLockHeldError, type NodeLockOptions } from "./lock/node-lock.ts";
export { releaseMemory } from "./memory.ts";
export { isAtLeast, type KernelVersion, kernelVersion } from "./modules/kernel-version.ts";
export { createModules, type ModuleResult, type Modules, type ModulesOptions } from "./modules/modules.ts";
export { NetlinkError } from "./netlink/error.ts";
export { NativeCodeError } from "./netlink/koffi.ts";
export { openRouteListening } from "./netlink/listening.ts";
export { openGenericSocket, openNetfilterSocket, openRouteSocket } from "./netlink/socket.ts";
export type { Nfacct, NfacctCount, NfacctResult } from "./nfacct/nfacct.ts";
export { createNfacct } from "./nfacct/open.ts";
export type { NftablesClient } from "./nftables/client.ts";
export { NftablesError } from "./nftables/error.ts";
export { type NftTableName, nftTableNames, type ReadNftOptions, readNftTables } from "./nftables/foreign.ts";
export { type NftablesOptions, openNftables } from "./nftables/open.ts";
export { isNftTableThere } from "./nftables/table-there.ts";
export type { NftablesNews, NftablesWatchOptions, TouchedTable } from "./nftables/watch.ts";
export { type KernelReader, openKernelReader } from "./reading/reader.ts";
export { readingRunner } from "./reading/runner.ts";
export { readingOnly, readsLinks, readsNftables, readsServers, readsSets, WritesRefused } from "./reading/sockets.ts";
export { createRouting, type RoutingOptions } from "./routes/open.ts";
export type {
  MarkRule,
  RouteEntry,
  Routing,
  RoutingCommand,
  RoutingState,
  RoutingWatchOptions,
  TableRoute,
} from "./routes/routes.ts";
export { CommandError, type CommandFailure, type FailureReason } from "./runner/command-error.ts";
export { createRunner, type ProcessRunnerOptions } from "./runner/process-runner.ts";
export type { Argv, Input, Runner, RunOptions, RunResult, StreamOptions } from "./runner/runner.ts";
export { lines } from "./runner/text.ts";
export { createSysctl, type Sysctl, type SysctlResult } from "./sysctl/sysctl.ts";

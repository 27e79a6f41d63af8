export type {
  Environment,
  Ipvs,
  PacketSet,
  PersistenceTemplate,
  RecentLists,
  Remembered,
  RouteAnswer,
  RouteQuery,
  SetQuery,
} from "./environment.ts";
export {
  type KernelTime,
  packetSet,
  packetSets,
  parseRecentList,
  parseRouteGets,
  type Route,
  type RouteGet,
  routeGetLine,
  routing,
  ticksPerSecond,
} from "./node-facts.ts";
export {
  type Assumption,
  type Exploration,
  type IptablesVisit,
  type Landing,
  landings,
  type NftVisit,
  type Outcome,
  TraceError,
  type Undecided,
  type Visit,
  withoutOthersMasquerade,
} from "./outcome.ts";
export {
  type Endpoint,
  type Hook,
  type HookStage,
  type Packet,
  PacketError,
  type Rules,
  type TableName,
} from "./packet.ts";
export {
  type AskRoutes,
  createTracer,
  type ExploreOptions,
  explore,
  exploreAsking,
  type Tracer,
  trace,
} from "./trace.ts";
export { traceText } from "./trace-text.ts";

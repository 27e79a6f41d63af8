export { PacketError } from "./check-packet.ts";
export { TraceError } from "./errors.ts";
export { type AskRoutes, exploreAsking } from "./explore-asking.ts";
export { type Landing, landings } from "./landings.ts";
export { type KernelTime, parseRecentList, ticksPerSecond } from "./recent-lists.ts";
export { parseRouteGets, type RouteGet, routeGetLine } from "./route-get.ts";
export { parseRoutes, type Route, routing } from "./routes.ts";
export { packetSet, packetSets } from "./sets.ts";
export type { TableName } from "./table-name.ts";
export { createTracer, explore, type Tracer, trace } from "./trace.ts";
export type {
  Assumption,
  Endpoint,
  Environment,
  Exploration,
  Hook,
  IptablesVisit,
  Ipvs,
  NftVisit,
  Outcome,
  Packet,
  PacketSet,
  PersistenceTemplate,
  RecentLists,
  Remembered,
  RouteAnswer,
  RouteQuery,
  Rules,
  SetQuery,
  Stage,
  Undecided,
  Visit,
} from "./types.ts";

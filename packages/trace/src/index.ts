export { type AddressRange, addressRange, inRange } from "./address.ts";
export { TraceError } from "./errors.ts";
export { type Landing, landings } from "./landings.ts";
export { type KernelTime, parseRecentList, ticksPerSecond } from "./recent-lists.ts";
export { parseRoutes, type Route, routing } from "./routes.ts";
export { packetSet, packetSets } from "./sets.ts";
export { createTracer, explore, type Tracer, trace } from "./trace.ts";
export type {
  Assumption,
  Endpoint,
  Environment,
  Exploration,
  Hook,
  Ipvs,
  Outcome,
  Packet,
  PacketSet,
  PersistenceTemplate,
  RecentLists,
  SetQuery,
  Stage,
  Undecided,
  Visit,
} from "./types.ts";

export { TraceError } from "./errors.ts";
export { type Landing, landings } from "./landings.ts";
export { packetSet, packetSets } from "./sets.ts";
export { createTracer, type Tracer, trace } from "./trace.ts";
export type {
  Endpoint,
  Environment,
  Hook,
  Ipvs,
  Outcome,
  Packet,
  PacketSet,
  PersistenceTemplate,
  RecentLists,
  SetQuery,
  Stage,
  Visit,
} from "./types.ts";

export { TraceError } from "./errors.ts";
export { type Landing, landings } from "./landings.ts";
export { packetSet, packetSets } from "./sets.ts";
export { createTracer, type Tracer, trace } from "./trace.ts";
export type {
  Endpoint,
  Environment,
  Hook,
  Outcome,
  Packet,
  PacketSet,
  RecentLists,
  SetQuery,
  Visit,
} from "./types.ts";

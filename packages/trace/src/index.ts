export { TraceError } from "./errors.ts";
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

export { type ControllerOptions, SliceController, type SliceWriter } from "./controller.ts";
export { SERVICE_NETWORK } from "./decode-service.ts";
export {
  ELECTION_TIMES,
  Election,
  type ElectionOptions,
  type ElectionTimes,
  type Leadership,
  type LeasePort,
} from "./election.ts";
export type { Key } from "./key.ts";
export type { LeaseRecord } from "./lease.ts";
export { NETWORK_STATUS } from "./network-status.ts";
export { MOST_ENDPOINTS, type SliceWrites } from "./plan-slices.ts";
export type { NetworkService, ProblemReason, SliceProblem } from "./service.ts";
export {
  decodeOwnSlice,
  type OwnSlice,
  type SliceContent,
  type SliceObject,
  sliceObject,
} from "./slice.ts";
export { type ServicePlan, SliceState } from "./slice-state.ts";

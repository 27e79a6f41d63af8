export { type PodName, type PodProgram, type Pods, printed, type Refusal, servePods } from "./pod-streams.ts";
export { encodeEvent, encodeObject, MESSAGES as KUBERNETES_MESSAGES } from "./protobuf/encode.ts";
export { type Interceptor, LightApiServer, type SeenRequest, selection } from "./server.ts";
export {
  collectionOf,
  type Excess,
  fail,
  hugeEvent,
  hugeList,
  keyIn,
  line,
  Store,
  type StoredEvent,
  tlsFolder,
} from "./store.ts";

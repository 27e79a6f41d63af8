export { type Excess, hugeEvent, hugeList } from "./huge.ts";
export { type PodName, type PodProgram, type Pods, servePods } from "./pod-streams.ts";
export { printed } from "./printed.ts";
export { encodeEvent, encodeObject } from "./protobuf/encode.ts";
export { collectionOf } from "./resource-path.ts";
export { fail, line } from "./respond.ts";
export { selection } from "./selection.ts";
export { type Interceptor, LightApiServer, type SeenRequest } from "./server.ts";
export { keyIn, Store, type StoredEvent } from "./store.ts";

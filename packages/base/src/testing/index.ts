export { Followed, type FollowedStream, follow, type NotYet, until } from "./followed.ts";
export { PATIENCE_MS } from "./patience.ts";
export { settled, VirtualClock } from "./virtual-clock.ts";

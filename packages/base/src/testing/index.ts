export { Followed, type FollowedStream, follow, type NotYet, PATIENCE_MS, until } from "./followed.ts";
export { settled, VirtualClock } from "./virtual-clock.ts";

export { PATIENCE_MS } from "./patience.ts";
export { settled, VirtualClock } from "./virtual-clock.ts";

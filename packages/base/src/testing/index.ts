export { settled, VirtualClock } from "./virtual-clock.ts";

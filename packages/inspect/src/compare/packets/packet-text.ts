import { bracketed } from "@fairlead/base";
import type { Probe } from "./probes.ts";

/** `tcp 198.51.100.7 → 10.96.0.80:80 (outside)` */
export function packetText({ packet: { protocol, source, destination, dport }, source: sender }: Probe): string {
  return `${protocol} ${source} → ${bracketed(destination)}:${dport} (${sender.class})`;
}

import { affinityFindings, schedulerFindings } from "./balance.ts";
import { unusedFindings } from "./cluster-ips.ts";
import type { ModeFinding } from "./finding.ts";
import { kernelFindings } from "./kernel.ts";
import { localhostFindings } from "./localhost.ts";
import { nodePortFindings } from "./node-ports.ts";
import type { ModeChange } from "./sides.ts";
import { treatmentFindings } from "./treatments.ts";

/**
 * What changes for clients of a node when its proxy goes on in another mode, and why. Both sides are plans of the same
 * objects.
 */
export function modeChange(change: ModeChange): readonly ModeFinding[] {
  return [
    ...kernelFindings(change),
    ...treatmentFindings(change),
    ...nodePortFindings(change),
    ...localhostFindings(change),
    ...schedulerFindings(change),
    ...affinityFindings(change),
    ...unusedFindings(change),
  ];
}

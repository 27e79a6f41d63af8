import { systemClock } from "@fairlead/base";
import { type OpenListening, openListening } from "../netlink/listening.ts";
import { type OpenNetlink, openNetfilterSocket } from "../netlink/socket.ts";
import type { Runner } from "../runner/runner.ts";
import { createNetlinkTracking } from "./netlink-tracking.ts";
import { createTrackingTools } from "./tools-tracking.ts";
import type { Tracking } from "./tracking.ts";

/** How connection tracking is read and listened to. */
export interface TrackingOptions {
  /** How netlink is reached; default: in the network namespace of this process. */
  readonly open?: OpenNetlink;
  /** How events are listened to; default: in the network namespace of this process. */
  readonly listen?: OpenListening;
}

/**
 * What is tracked in the network namespace of this process: by netlink, and where that cannot be had by
 * conntrack-tools.
 */
export async function openTracking(runner: Runner, options: TrackingOptions = {}): Promise<Tracking> {
  const { open = openNetfilterSocket, listen = openListening } = options;
  try {
    await (await open()).close();
    return createNetlinkTracking({ open, listen, timers: systemClock });
  } catch {
    return createTrackingTools(runner);
  }
}

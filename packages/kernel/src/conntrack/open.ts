import { type OpenNetlink, openNetfilterSocket } from "../netlink/socket.ts";
import type { Runner } from "../runner/runner.ts";
import type { Conntrack } from "./conntrack.ts";
import { createNetlinkConntrack } from "./netlink.ts";
import { createConntrackTools } from "./tools.ts";

/** How entries are listed and deleted. */
export interface ConntrackOptions {
  /** Reported once, with the reason, when conntrack-tools have to do instead of netlink. */
  readonly onFallback?: (reason: unknown) => void;
  /** How netlink is reached; tests have their own. */
  readonly open?: OpenNetlink;
}

/**
 * The connection tracking table: by netlink, in the network namespace of this process, and where that cannot be had by
 * conntrack-tools. Looks at the first sweep which of them it is.
 */
export function createConntrack(runner: Runner, options: ConntrackOptions = {}): Conntrack {
  const { open = openNetfilterSocket, onFallback = () => {} } = options;
  let chosen: Promise<Conntrack> | undefined;
  const choose = async (): Promise<Conntrack> => {
    try {
      await (await open()).close();
      return createNetlinkConntrack(open);
    } catch (reason) {
      onFallback(reason);
      return createConntrackTools(runner);
    }
  };
  return {
    async sweep(...of) {
      chosen ??= choose();
      return (await chosen).sweep(...of);
    },
  };
}

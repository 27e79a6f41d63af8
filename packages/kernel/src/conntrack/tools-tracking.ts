import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "../family.ts";
import { CommandError } from "../runner/command-error.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { ConnectionEvent } from "./connection.ts";
import { listConnections } from "./connections.ts";
import { parseConnectionEvent } from "./parse-connection.ts";
import type { Tracking } from "./tracking.ts";

/** Asks conntrack-tools, here or wherever the runner starts programs. */
export function createTrackingTools(runner: Runner): Tracking {
  return {
    async *list() {
      for (const family of IP_FAMILIES) {
        for (const protocol of ["TCP", "UDP", "SCTP"] as const) yield* listConnections(runner, family, protocol);
      }
    },
    // One process for both: without -f it tells of all families.
    follow: async (signal) => followed(runner, signal),
  };
}

async function* followed(runner: Runner, signal: AbortSignal): AsyncGenerator<ConnectionEvent, void, void> {
  try {
    for await (const line of lines(runner.stream(["conntrack", "-E"], { timeoutMs: 0, signal }))) {
      const event = parseConnectionEvent(line, familyIn(line));
      if (event !== undefined) yield event;
    }
  } catch (error) {
    if (!signal.aborted || !(error instanceof CommandError)) throw error;
  }
}

function familyIn(line: string): IPFamily {
  return / src=[\d.]+ /.test(line) ? "IPv4" : "IPv6";
}

import type { Flow } from "@fairlead/inspect";
import { CommandError, NetlinkError } from "@fairlead/kernel";
import { CommandFailure } from "../../frame/errors.ts";
import type { Attribution } from "./attribution.ts";

/**
 * The connections of services that a node tracks.
 *
 * @param limit as many at most
 * @throws CommandFailure when they cannot be read
 */
export async function listed(
  { node, tracking, flowOf }: Attribution,
  limit = Number.POSITIVE_INFINITY,
): Promise<readonly Flow[]> {
  const flows: Flow[] = [];
  try {
    for await (const connection of tracking.list()) {
      const flow = flowOf(connection);
      if (flow !== undefined) flows.push(flow);
      if (flows.length >= limit) break;
    }
  } catch (error) {
    throw unreadable(node, error);
  }
  return flows;
}

/** What is said where a kernel does not give its connections; another error is given back as it is. */
export function unreadable(node: string, error: unknown): unknown {
  if (!(error instanceof CommandError || error instanceof NetlinkError)) return error;
  return new CommandFailure(`the connections of ${node} cannot be read: ${error.message}`, { cause: error });
}

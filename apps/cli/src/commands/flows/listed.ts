import type { Flow } from "@fairlead/inspect";
import { CommandError, type Connection, NetlinkError } from "@fairlead/kernel";
import { CommandFailure } from "../../frame/errors.ts";
import type { Attribution } from "./attribution.ts";

/**
 * The connections of services that a node tracks.
 *
 * @param limit as many at most
 * @throws CommandFailure when they cannot be read
 */
export async function listed(attribution: Attribution, limit = Number.POSITIVE_INFINITY): Promise<readonly Flow[]> {
  const { node, tracking, flowOf, mayBeRelayed, fits = () => true } = attribution;
  const flows: { readonly connection: Connection; readonly flow: Flow }[] = [];
  try {
    for await (const connection of tracking.list()) {
      const flow = flowOf(connection);
      if (flow !== undefined && (mayBeRelayed(flow) || fits(flow))) flows.push({ connection, flow });
      if (flows.length >= limit) break;
    }
  } catch (error) {
    throw unreadable(node, error);
  }
  if (!flows.some(({ flow }) => mayBeRelayed(flow))) return flows.map(({ flow }) => flow);
  return (await relayed(flows, attribution)).filter(fits);
}

/** With the endpoints that only the node's agent knows. */
async function relayed(
  flows: readonly { readonly connection: Connection; readonly flow: Flow }[],
  { flowOf, mayBeRelayed, relays }: Attribution,
): Promise<readonly Flow[]> {
  const table = await relays();
  return flows.map(({ connection, flow }) => (mayBeRelayed(flow) ? flowOf(connection, table) : undefined) ?? flow);
}

/** What is said where a kernel does not give its connections; another error is given back as it is. */
export function unreadable(node: string, error: unknown): unknown {
  if (!(error instanceof CommandError || error instanceof NetlinkError)) return error;
  return new CommandFailure(`the connections of ${node} cannot be read: ${error.message}`, { cause: error });
}

import { socketText } from "@fairlead/base";
import { RequestError } from "@fairlead/console";
import { type PlannedNode, parseTarget } from "@fairlead/inspect";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { NO_DESTINATION, socketDestination } from "../trace/packet.ts";
import { serviceDestination } from "../trace/service-destination.ts";

/**
 * A destination as `fairlead trace --to` takes it where only rules are known: a service is looked up in the plan, an
 * address stays what it is.
 *
 * @throws RequestError in the words of `fairlead trace`
 */
export function addressedTo(planned: PlannedNode, to: string): string {
  try {
    if (socketDestination({ to }) !== undefined) return to;
    const target = parseTarget(to, "default");
    const found = target.kind === "address" ? undefined : serviceDestination(planned, target, to);
    if (found?.port !== undefined) return `${socketText(found.address, found.port)}/${found.protocol}`;
  } catch (error) {
    if (error instanceof RangeError) throw new RequestError(400, `--to=${to}: ${NO_DESTINATION}`);
    if (error instanceof UsageError || error instanceof CommandFailure) throw new RequestError(400, error.message);
    throw error;
  }
  throw new RequestError(400, `--to=${to}: there is no such service with a ClusterIP`);
}

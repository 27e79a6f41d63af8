import type { Flow } from "@fairlead/inspect";
import type { Connection, ConnectionEvent } from "@fairlead/kernel";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { UsageError } from "../../frame/errors.ts";
import { numberOf } from "../../inputs/number.ts";
import { print } from "../../output/output.ts";
import { type Attribution, openAttribution } from "./attribution.ts";
import { inOrder } from "./filter.ts";
import { listed, unreadable } from "./listed.ts";
import type { flowsOptions } from "./options.ts";
import { eventText, flowsText } from "./text.ts";

type Values = CommandInput<typeof flowsOptions>["options"];

export async function run({ options }: CommandInput<typeof flowsOptions>, context: Context): Promise<ExitCode> {
  const limit = numberOf("limit", options.limit) ?? Number.POSITIVE_INFINITY;
  const seconds = numberOf("for", options.for);
  if (options.follow && options.output === "yaml") throw new UsageError("--follow: prints a table, or JSON by lines");
  const attribution = await openAttribution(options, context);
  if (options.follow) return follow(attribution, { limit, seconds }, options, context);
  const flows = await context.progress("reading connections", async () => inOrder(await listed(attribution, limit)));
  await print(options.output, flows, () => flowsText(flows, context.style), context);
  return flows.some(hangs) ? 1 : 0;
}

function hangs({ endpoint }: Flow): boolean {
  return endpoint?.condition === "gone";
}

interface Bounds {
  readonly limit: number;
  readonly seconds: number | undefined;
}

async function follow(
  { node, tracking, flowOf, mayBeRelayed, relays, fits = () => true }: Attribution,
  { limit, seconds }: Bounds,
  { output }: Values,
  context: Context,
): Promise<ExitCode> {
  const over = seconds === undefined ? [] : [AbortSignal.timeout(seconds * 1_000)];
  const signal = AbortSignal.any([context.signal, ...over]);
  const attributed = async (connection: Connection) => {
    const flow = flowOf(connection);
    return flow !== undefined && mayBeRelayed(flow) ? flowOf(connection, await relays()) : flow;
  };
  const reported = async (event: ConnectionEvent) => {
    if (event.kind === "lost") context.warn("more events than could be read: some connections are missing");
    // What only changes its state began before, and will end.
    if (event.kind === "lost" || event.kind === "update") return 0;
    const flow = await attributed(event.connection);
    if (flow === undefined || !fits(flow)) return 0;
    context.out(
      output === "json" ? `${JSON.stringify({ event: event.kind, ...flow })}\n` : eventText(event.kind, flow),
    );
    return 1;
  };
  await context.untilStopped(async () => {
    let lines = 0;
    try {
      for await (const event of await tracking.follow(signal)) {
        lines += await reported(event);
        if (lines >= limit) break;
      }
    } catch (error) {
      throw unreadable(node, error);
    }
  });
  return 0;
}

/** `flows` and `top`: the connections of services through a node. */

import { socketText } from "@fairlead/base";
import { type Flow, type ServiceTraffic, trafficByService, type Volume } from "@fairlead/inspect";
import type { Connection, ConnectionEvent } from "@fairlead/kernel";
import type { connectionOptions, flowsOptions } from "../facts/nodes.ts";
import { type CommandInput, type ExitCode, numberOf } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { UsageError } from "../frame/errors.ts";
import { printList } from "../frame/output.ts";
import type { Style } from "../frame/terminal.ts";
import { bytesText, tableText } from "../frame/text.ts";
import { type Attribution, inOrder, listed, openAttribution, unreadable } from "./attribution.ts";

type Values = CommandInput<typeof flowsOptions>["options"];

export async function run({ options }: CommandInput<typeof flowsOptions>, context: Context): Promise<ExitCode> {
  const limit = numberOf("limit", options.limit) ?? Number.POSITIVE_INFINITY;
  const seconds = numberOf("for", options.for);
  if (options.follow && options.output !== "table" && options.output !== "json") {
    throw new UsageError("--follow: prints a table, or JSON by lines");
  }
  const attribution = await openAttribution(options, context);
  if (options.follow) return follow(attribution, { limit, seconds }, options, context);
  const flows = await context.progress("reading connections", async () => inOrder(await listed(attribution, limit)));
  const text = (wide: boolean) => flowsText(flows, wide, context.style);
  await printList(options.output, flows, { text, names: serviceNames(flows) }, context);
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
  let lost = false;
  const reported = async (event: ConnectionEvent) => {
    // At tens of thousands of connections a second that is ten times a second.
    if (event.kind === "lost" && !lost) context.warn("more events than could be read: some connections are missing");
    lost ||= event.kind === "lost";
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

export async function top({ options }: CommandInput<typeof connectionOptions>, context: Context): Promise<ExitCode> {
  const attribution = await openAttribution(options, context);
  const flows = await context.progress("reading connections", () => listed(attribution));
  const traffic = trafficByService(flows);
  const text = (wide: boolean) => trafficText(traffic, wide, context.style);
  await printList(options.output, traffic, { text, names: serviceNames(traffic) }, context);
  return traffic.some(({ gone }) => gone > 0) ? 1 : 0;
}

function trafficText(traffic: readonly ServiceTraffic[], wide: boolean, style: Style): string {
  if (traffic.length === 0) return "no connections of services\n";
  const rows = traffic.flatMap((service) => {
    const { endpoints, protocol, owner, gone } = service;
    const name = `${serviceText(service)} ${protocol.toLowerCase()}`;
    return [
      [name, owner, ...counts(service), ...(wide ? [String(gone), ""] : [])],
      ...endpoints.map((one) => [
        `  ${endpointText(one, style)}`,
        "",
        ...counts(one),
        ...(wide ? ["", one.endpoint?.nodeName ?? "-"] : []),
      ]),
    ];
  });
  const more = wide ? ["gone", "node"] : [];
  return tableText(["service", "owner", "connections", "unreplied", "sent", "received", ...more], rows);
}

type Counts = Pick<ServiceTraffic, "connections" | "unreplied" | "sent" | "received">;

function counts({ connections, unreplied, sent, received }: Counts): readonly string[] {
  const volumes = [sent, received].map((one) => (one === undefined ? "-" : bytesText(one.bytes)));
  return [String(connections), String(unreplied), ...volumes];
}

/** The connections as a table; bytes only where the kernel counts them. */
function flowsText(flows: readonly Flow[], wide: boolean, style: Style): string {
  if (flows.length === 0) return "no connections of services\n";
  const counted = flows.some(({ sent }) => sent !== undefined);
  const head = ["client", "frontend", "service", "endpoint", "owner", "state"];
  const more = [...(counted ? ["sent", "received"] : []), ...(wide ? ["kind", "node", "expires"] : [])];
  const rows = flows.map((flow) => [
    ...columns(flow, style),
    ...(counted ? volumes(flow) : []),
    ...(wide ? wideColumns(flow) : []),
  ]);
  return tableText([...head, ...more], rows);
}

function wideColumns({ frontend, endpoint, expires }: Flow): readonly string[] {
  return [frontend.kind, endpoint?.nodeName ?? "-", expires === undefined ? "-" : `${expires} s`];
}

/** Service ports with connections, as `--service` takes them. */
function serviceNames(of: readonly Pick<Flow, "service" | "port">[]): readonly string[] {
  return [...new Set(of.map(serviceText))];
}

function columns(flow: Flow, style: Style): readonly string[] {
  const { client, frontend, owner } = flow;
  return [
    socketText(client.address, client.port),
    `${flow.protocol.toLowerCase()} ${socketText(frontend.address, frontend.port)}`,
    serviceText(flow),
    endpointText(flow, style),
    owner,
    stateText(flow),
  ];
}

function serviceText({ service, port }: Pick<Flow, "service" | "port">): string {
  return port === "" ? service : `${service}:${port}`;
}

/** The endpoint, and what of it is not as it should be. */
function endpointText({ endpoint, relayed }: Pick<Flow, "endpoint" | "relayed">, style: Style): string {
  if (endpoint === undefined) return relayed ? "relayed" : "not translated";
  const { address, port, condition } = endpoint;
  const socket = socketText(address, port);
  if (condition === "ready") return socket;
  return `${socket} ${condition === "gone" ? style.bad("(gone)") : style.warn(`(${condition})`)}`;
}

function stateText({ state, offloaded, replied }: Flow): string {
  const known = state === undefined ? [] : [state.toLowerCase()];
  return [...known, ...(offloaded ? ["offloaded"] : []), ...(replied ? [] : ["unreplied"])].join(", ");
}

function volumes({ sent, received }: { readonly sent?: Volume; readonly received?: Volume }): readonly string[] {
  return [sent, received].map((one) => (one === undefined ? "-" : bytesText(one.bytes)));
}

const SIGNS = { new: "+", gone: "-" } as const;

/** One line of --follow: + begins, - ends. */
function eventText(kind: keyof typeof SIGNS, flow: Flow): string {
  const { client, frontend, protocol, endpoint, relayed, sent, received, owner } = flow;
  const untranslated = relayed ? "relayed" : "not translated";
  const to = endpoint === undefined ? untranslated : socketText(endpoint.address, endpoint.port);
  const gone = endpoint?.condition === "gone" ? " (gone)" : "";
  const counted =
    sent === undefined || received === undefined
      ? ""
      : `, ${bytesText(sent.bytes)} sent, ${bytesText(received.bytes)} received`;
  const way = `${socketText(client.address, client.port)} → ${socketText(frontend.address, frontend.port)} → ${to}${gone}`;
  return `${SIGNS[kind]} ${protocol.toLowerCase()} ${way}  ${serviceText(flow)}, ${owner}${counted}\n`;
}

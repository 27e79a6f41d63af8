import { socketText } from "@fairlead/base";
import type { Flow, Volume } from "@fairlead/inspect";
import type { Style } from "../../frame/style.ts";
import { bytesText } from "../../output/bytes.ts";
import { tableText } from "../../output/table.ts";

/** The connections as a table; bytes only where the kernel counts them. */
export function flowsText(flows: readonly Flow[], style: Style): string {
  if (flows.length === 0) return "no connections of services\n";
  const counted = flows.some(({ sent }) => sent !== undefined);
  const head = ["client", "frontend", "service", "endpoint", "owner", "state"];
  const rows = flows.map((flow) => [...columns(flow, style), ...(counted ? volumes(flow) : [])]);
  return tableText(counted ? [...head, "sent", "received"] : head, rows);
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

export function serviceText({ service, port }: Pick<Flow, "service" | "port">): string {
  return port === "" ? service : `${service}:${port}`;
}

/** The endpoint, and what of it is not as it should be. */
export function endpointText({ endpoint, relayed }: Pick<Flow, "endpoint" | "relayed">, style: Style): string {
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
export function eventText(kind: keyof typeof SIGNS, flow: Flow): string {
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

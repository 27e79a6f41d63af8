/** Where traffic goes: connections by kind of frontend, service and node, and the picture of them. */

import type { Flow } from "@fairlead/inspect";
import type { NodeTraffic, TrafficWay } from "./protocol.ts";

/** Ways of a node that are listed by service; a row is sent at each look. */
const MOST_WAYS = 50;

/** Sums connections up by kind of frontend, service and the endpoint's node. */
export function waysOf(flows: Iterable<Flow>): NodeTraffic["ways"] {
  const ways = merged(
    Array.from(flows, (flow): TrafficWay => {
      const { frontend, service, endpoint, sent, received } = flow;
      const bytes = (sent !== undefined || received !== undefined) && { bytes: bytesOf(flow) };
      const node = endpoint?.nodeName ?? "";
      return { frontend: frontend.kind, service, node, gone: hangs(flow), connections: 1, ...bytes };
    }),
  );
  const others = ways.slice(MOST_WAYS).map((way) => ({ ...way, service: "" as const }));
  return [...ways.slice(0, MOST_WAYS), ...merged(others)];
}

export function hangs({ endpoint }: Pick<Flow, "endpoint">): boolean {
  return endpoint?.condition === "gone";
}

/** In both directions. */
export function bytesOf({ sent, received }: Pick<Flow, "sent" | "received">): number {
  return (sent?.bytes ?? 0) + (received?.bytes ?? 0);
}

/** Sums up those that differ in numbers only, most connections first. */
export function merged(ways: readonly TrafficWay[]): readonly TrafficWay[] {
  const sums = new Map<string, TrafficWay>();
  for (const way of ways) {
    const key = `${way.frontend} ${way.service} ${way.node} ${way.gone}`;
    const { connections = 0, bytes } = sums.get(key) ?? {};
    const all = bytes === undefined && way.bytes === undefined ? {} : { bytes: (bytes ?? 0) + (way.bytes ?? 0) };
    sums.set(key, { ...way, connections: connections + way.connections, ...all });
  }
  return [...sums.values()].sort((a, b) => b.connections - a.connections);
}

/** One box of the picture: a kind of frontend, a service or a node. */
export interface WayBox {
  /** "others": those without a box of their own; "gone": endpoints that are; "none": not translated here. */
  readonly kind: "one" | "others" | "gone" | "none";
  readonly name: string;
  readonly connections: number;
  readonly bytes?: number | undefined;
  /** Pixels. */
  readonly top: number;
  readonly height: number;
}

/** A band between two boxes: pixels of its upper edge at both, and of its height. */
export interface WayBand {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly gone: boolean;
}

/** Frontends, services and nodes, with the bands from each column to the next. */
export interface WayPicture {
  readonly height: number;
  readonly columns: readonly [frontends: readonly WayBox[], services: readonly WayBox[], nodes: readonly WayBox[]];
  readonly bands: readonly [toServices: readonly WayBand[], toNodes: readonly WayBand[]];
}

/** Boxes of a column with a name of their own. */
const MOST_BOXES = 7;
/** Pixels: of all connections together, of a box at least, and between two. */
const [ALL, BOX, GAP] = [160, 42, 8];

/** Lays out where traffic goes: what is drawn is as high as its share of all connections. */
export function wayPicture(ways: readonly TrafficWay[]): WayPicture {
  const scale = ALL / Math.max(1, sumOf(ways));
  const frontends = column(ways, scale, ({ frontend }) => ["one", frontend]);
  const services = column(ways, scale, ({ service }) => (service === "" ? ["others", ""] : ["one", service]));
  const nodes = column(ways, scale, ({ node, gone }) =>
    gone ? ["gone", ""] : node === "" ? ["none", ""] : ["one", node],
  );
  const columns = [frontends.boxes, services.boxes, nodes.boxes] as const;
  const bottoms = columns.flatMap((boxes) => boxes.map(({ top, height }) => top + height));
  return {
    height: Math.max(0, ...bottoms),
    columns,
    bands: [bands(ways, scale, frontends, services), bands(ways, scale, services, nodes)],
  };
}

type BoxKey = readonly [kind: WayBox["kind"], name: string];

interface Column {
  readonly boxes: readonly WayBox[];
  /** The box that a way goes through. */
  readonly at: (way: TrafficWay) => number;
}

const NO_KEY: BoxKey = ["none", ""];
const KINDS: readonly WayBox["kind"][] = ["one", "others", "none", "gone"];

function column(ways: readonly TrafficWay[], scale: number, keyOf: (way: TrafficWay) => BoxKey): Column {
  const named = Map.groupBy(ways, (way) => keyOf(way).join(" "));
  const most = [...named].filter(([key]) => key.startsWith("one ")).sort(([, a], [, b]) => sumOf(b) - sumOf(a));
  const kept = new Set(most.slice(0, MOST_BOXES).map(([key]) => key));
  const boxOf = (way: TrafficWay): BoxKey => {
    const key = keyOf(way);
    return key[0] !== "one" || kept.has(key.join(" ")) ? key : ["others", ""];
  };
  const groups = Array.from(
    Map.groupBy(ways, (way) => boxOf(way).join(" ")),
    ([key, own]) => {
      const [kind, name] = own[0] === undefined ? NO_KEY : boxOf(own[0]);
      return { key, kind, name, connections: sumOf(own), bytes: bytesIn(own) };
    },
  ).sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || b.connections - a.connections);
  let top = 0;
  const boxes = groups.map(({ kind, name, connections, bytes }): WayBox => {
    const box = { kind, name, connections, bytes, top, height: Math.max(BOX, connections * scale) };
    top += box.height + GAP;
    return box;
  });
  const places = new Map(groups.map(({ key }, at) => [key, at]));
  return { boxes, at: (way) => places.get(boxOf(way).join(" ")) ?? 0 };
}

function bands(ways: readonly TrafficWay[], scale: number, left: Column, right: Column): readonly WayBand[] {
  // Of a box that is higher than its connections the bands meet the middle.
  const starts = ({ boxes }: Column) => boxes.map((box) => box.top + (box.height - box.connections * scale) / 2);
  const [from, to] = [starts(left), starts(right)];
  const links = Map.groupBy(
    ways,
    (way) => left.at(way) * (right.boxes.length + 1) * 2 + right.at(way) * 2 + (way.gone ? 1 : 0),
  );
  return [...links]
    .sort(([a], [b]) => a - b)
    .flatMap(([, own]) => {
      const [way] = own;
      if (way === undefined) return [];
      const [start, end, width] = [left.at(way), right.at(way), sumOf(own) * scale];
      const band = { from: from[start] ?? 0, to: to[end] ?? 0, width, gone: way.gone };
      from[start] = band.from + width;
      to[end] = band.to + width;
      return [band];
    });
}

function sumOf(ways: readonly TrafficWay[]): number {
  return ways.reduce((sum, { connections }) => sum + connections, 0);
}

/** Undefined: nothing counts them. */
function bytesIn(ways: readonly TrafficWay[]): number | undefined {
  const counted = ways.flatMap(({ bytes }) => bytes ?? []);
  return counted.length === 0 ? undefined : counted.reduce((sum, bytes) => sum + bytes, 0);
}

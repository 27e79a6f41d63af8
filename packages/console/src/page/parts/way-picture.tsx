import type { EndpointFate } from "@fairlead/core";
import type { PortExplanation } from "@fairlead/inspect";
import { socket } from "../socket.ts";

interface Props {
  readonly port: PortExplanation;
  readonly service: string;
  /** The node that is looked from. */
  readonly node: string;
}

const ROW = 24;
const WIDTH = { frontend: 240, service: 190, node: 300 } as const;
const GAP = 70;
const X = { frontend: 0, service: WIDTH.frontend + GAP, node: WIDTH.frontend + GAP + WIDTH.service + GAP } as const;
const TOTAL = X.node + WIDTH.node;
/** More would make a picture that nothing looks at; the table below has all. */
const MOST = { frontends: 6, nodes: 6, endpoints: 5 } as const;

/** The way of a packet: frontends, the service, the endpoints node by node. The tables below say the same in words. */
export function WayPicture({ port, service, node }: Props) {
  const frontends = port.frontends.slice(0, MOST.frontends);
  if (frontends.length === 0 && port.endpoints.length === 0) return null;
  const nodes = placed(byNode(port.endpoints));
  const height = Math.max(frontends.length * (ROW + 8), nodes.at(-1)?.bottom ?? 0, ROW * 2) + 2;
  const middle = height / 2;
  const top = middle - (frontends.length * (ROW + 8)) / 2;
  const used = (one: EndpointFate) => one.cluster.in || one.local.in;
  return (
    <svg
      class="way"
      viewBox={`-1 -1 ${TOTAL + 2} ${height + 2}`}
      width={TOTAL + 2}
      role="img"
      aria-label={labelOf(port, service)}
    >
      {frontends.map(({ kind, address, port: number, treatments }, at) => {
        const y = top + at * (ROW + 8);
        const isServed = Object.values(treatments).some(({ verdict }) => verdict === "proxy");
        return (
          <g key={`${kind} ${address} ${number}`}>
            <rect class="box" x={X.frontend} y={y} width={WIDTH.frontend} height={ROW} rx="5" />
            <text x={X.frontend + 8} y={y + 16}>
              {cut(address === undefined ? `node port ${number}` : socket(address, number), 30)}
            </text>
            <path class={isServed ? "used" : "unused"} d={curve(WIDTH.frontend, y + ROW / 2, X.service, middle)} />
          </g>
        );
      })}
      <rect class="service" x={X.service} y={middle - ROW} width={WIDTH.service} height={ROW * 2} rx="6" />
      <text x={X.service + WIDTH.service / 2} y={middle - 3} text-anchor="middle">
        {cut(service, 24)}
      </text>
      <text class="small" x={X.service + WIDTH.service / 2} y={middle + 14} text-anchor="middle">
        {port.endpoints.filter(used).length} of {port.endpoints.length} endpoints in use
      </text>
      {nodes.map(({ name, shown, more, y, bottom }) => (
        <g key={name}>
          <rect class="box" x={X.node} y={y} width={WIDTH.node} height={bottom - y - 8} rx="5" />
          <text class="small" x={X.node + 8} y={y + 15}>
            {cut(name === "" ? "on no node" : name, 32)}
            {name === node ? " (looked from)" : ""}
          </text>
          {shown.map((endpoint, at) => (
            <g key={`${endpoint.slice} ${endpoint.address}`}>
              <text class={used(endpoint) ? "in" : "out"} x={X.node + 12} y={y + 15 + (at + 1) * 19}>
                {used(endpoint) ? "●" : "○"} {cut(socket(endpoint.address, endpoint.port), 34)}
              </text>
            </g>
          ))}
          {more > 0 && (
            <text class="small" x={X.node + 12} y={y + 15 + (shown.length + 1) * 19}>
              and {more} more
            </text>
          )}
          <path
            class={shown.some(used) ? "used" : "unused"}
            d={curve(X.service + WIDTH.service, middle, X.node, y + (bottom - y - 8) / 2)}
          />
        </g>
      ))}
    </svg>
  );
}

interface PlacedNode {
  readonly name: string;
  readonly shown: readonly EndpointFate[];
  readonly more: number;
  readonly y: number;
  readonly bottom: number;
}

function byNode(endpoints: readonly EndpointFate[]): ReadonlyMap<string, readonly EndpointFate[]> {
  return Map.groupBy(endpoints, ({ nodeName = "" }) => nodeName);
}

function placed(nodes: ReadonlyMap<string, readonly EndpointFate[]>): readonly PlacedNode[] {
  let y = 0;
  return [...nodes].slice(0, MOST.nodes).map(([name, all]) => {
    const shown = all.slice(0, MOST.endpoints);
    const more = all.length - shown.length;
    const lines = 1 + shown.length + (more > 0 ? 1 : 0);
    const node = { name, shown, more, y, bottom: y + lines * 19 + 18 };
    y = node.bottom;
    return node;
  });
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const half = (x1 + x2) / 2;
  return `M${x1} ${y1} C${half} ${y1} ${half} ${y2} ${x2} ${y2}`;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function labelOf({ frontends, endpoints, protocol, name }: PortExplanation, service: string): string {
  const inUse = endpoints.filter(({ cluster, local }) => cluster.in || local.in).length;
  return `The way to ${service} ${protocol} ${name}: ${frontends.length} frontends, ${inUse} of ${endpoints.length} endpoints in use`;
}

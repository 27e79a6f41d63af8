/** One port of a Service: its endpoints, and a picture of a packet's way. */

import type { EndpointFate, Membership, Treatment } from "@fairlead/core";
import type { FrontendExplanation, LostFrontend, PortExplanation } from "@fairlead/inspect";
import { socket } from "../findings.ts";
import { addressOf } from "../router.ts";
import { Badge, Scroll, TableHead } from "./common.tsx";

/** One port of a service: a picture, each frontend with what clients get, each endpoint with why it is in or out. */
export function ServicePort({
  port,
  service,
  node,
}: {
  readonly port: PortExplanation;
  readonly service: string;
  readonly node: string;
}) {
  const { name, protocol, route, frontends, fastPath, lost, endpoints } = port;
  return (
    <>
      <h3>
        {protocol} {name === "" ? "" : `port ${name}`}
      </h3>
      {route !== undefined && <p class="quiet">{`Served by ${route}`}</p>}
      {fastPath && <p class="quiet">{`Fast path: ${fastPath.used ? "" : "no, "}${fastPath.why}`}</p>}
      <Scroll label={`The way to ${service} ${name}`}>
        <WayPicture port={port} service={service} node={node} />
      </Scroll>
      <Scroll label={`Frontends and endpoints of ${protocol} ${name}`}>
        <table>
          <TableHead titles={["Frontend", "from pods", "from the node", "from outside"]} />
          <tbody>
            {frontends.map((frontend) => (
              <Frontend key={frontendName(frontend)} frontend={frontend} endpoints={endpoints} />
            ))}
            {lost.map((one) => (
              <tr key={frontendName(one)}>
                <th scope="row" class="mono">
                  {frontendName(one)}
                </th>
                <td colSpan={3}>{one.heldBy === undefined ? "not served here" : `held by ${one.heldBy}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <Endpoints endpoints={endpoints} />
      </Scroll>
    </>
  );
}

function Frontend({
  frontend,
  endpoints,
}: {
  readonly frontend: FrontendExplanation;
  readonly endpoints: readonly EndpointFate[];
}) {
  const { pod, node, outside } = frontend.treatments;
  return (
    <tr>
      <th scope="row" class="mono">
        <TraceLink frontend={frontend} />
        {frontend.policy === "Cluster" ? "" : ` (${frontend.policy})`}
      </th>
      {(
        [
          ["pod", pod],
          ["node", node],
          ["outside", outside],
        ] as const
      ).map(([name, treatment]) => (
        <td key={name}>
          <Badge {...treatmentVerdict(treatment, endpoints)} />
        </td>
      ))}
    </tr>
  );
}

function TraceLink({ frontend }: { readonly frontend: FrontendExplanation }) {
  const { address, port } = frontend;
  const name = frontendName(frontend);
  if (address === undefined) return <>{name}</>;
  return <a href={addressOf("trace", [], { from: "pod", to: socket(address, port) })}>{name}</a>;
}

function treatmentVerdict(treatment: Treatment, endpoints: readonly EndpointFate[]) {
  if (treatment.verdict === "leave") return { tone: "plain", text: "left to the other network" } as const;
  if (treatment.verdict !== "proxy") return { tone: "bad", text: treatment.verdict } as const;
  const { set, masquerade } = treatment;
  const count = endpoints.filter((one) => one[set].in).length;
  const text = `${count} ${set}${masquerade ? ", masqueraded" : ""}`;
  return { tone: count === 0 ? "bad" : "good", text } as const;
}

function frontendName({ kind, address, port }: FrontendExplanation | LostFrontend): string {
  return `${kind} ${address === undefined ? port : socket(address, port)}`;
}

function Endpoints({ endpoints }: { readonly endpoints: readonly EndpointFate[] }) {
  if (endpoints.length === 0) return <p class="quiet">There are no endpoints.</p>;
  return (
    <table>
      <TableHead titles={["Endpoint", "Node", "Cluster set", "Local set", "Slice"]} />
      <tbody>
        {endpoints.map(({ address, port, nodeName, cluster, local, slice }) => (
          <tr key={`${slice} ${address} ${port}`}>
            <th scope="row" class="mono">
              {socket(address, port)}
            </th>
            <td>{nodeName ?? "–"}</td>
            <td>
              <In membership={cluster} />
            </td>
            <td>
              <In membership={local} />
            </td>
            <td class="quiet">{slice}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function In({ membership }: { readonly membership: Membership }) {
  return (
    <>
      <Badge tone={membership.in ? "good" : "plain"} text={membership.in ? "in" : "out"} /> {membership.why}
    </>
  );
}

interface Props {
  readonly port: PortExplanation;
  readonly service: string;
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
function WayPicture({ port, service, node }: Props) {
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

import type { EndpointFate, Membership, Treatment } from "@fairlead/core";
import type { FrontendExplanation, LostFrontend, PortExplanation } from "@fairlead/inspect";
import { addressOf } from "../router.ts";
import { socket } from "../socket.ts";
import { Badge } from "./badge.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";
import { WayPicture } from "./way-picture.tsx";

/** One port of a service: a picture, each frontend with who gets what, each endpoint with why it is in or out. */
export function ServicePort({
  port,
  service,
  node,
}: {
  readonly port: PortExplanation;
  readonly service: string;
  readonly node: string;
}) {
  const { name, protocol, frontends, fastPath, lost, endpoints } = port;
  return (
    <>
      <h3>
        {protocol} {name === "" ? "" : `port ${name}`}
      </h3>
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

/** Its way, for those that have an address. */
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

import type { FlowEndpoint, ServiceTraffic } from "@fairlead/inspect";
import type { FlowsAnswer } from "../../protocol/index.ts";
import type { Tone } from "../findings.ts";
import { serviceAddress } from "../router.ts";
import { socket } from "../socket.ts";
import { Badge, Owner } from "./badge.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";
import { Volume } from "./volume.tsx";

const CONDITIONS: Readonly<Record<FlowEndpoint["condition"], readonly [Tone, string]>> = {
  ready: ["good", "ready"],
  terminating: ["warn", "terminating"],
  "not-ready": ["warn", "not ready"],
  gone: ["bad", "gone: hangs"],
};

interface FlowEndProps {
  readonly endpoint?: FlowEndpoint | undefined;
  readonly relayed?: boolean | undefined;
}

/** Who answers a connection, and what the slices say of it now. */
export function FlowEnd({ endpoint, relayed = false }: FlowEndProps) {
  if (endpoint === undefined) return <span class="quiet">{relayed ? "relayed" : "not translated here"}</span>;
  const [tone, text] = CONDITIONS[endpoint.condition];
  return (
    <>
      <span class="mono">{socket(endpoint.address, endpoint.port)}</span> <Badge tone={tone} text={text} />
    </>
  );
}

/** Connections by service port and endpoint, those with most of them first. */
export function Traffic({ answer, names }: { readonly answer: FlowsAnswer; readonly names: boolean }) {
  const { traffic } = answer;
  if (traffic.length === 0) return <p class="quiet">No connection with a service.</p>;
  return (
    <Scroll label="Connections by service and endpoint">
      <table>
        <TableHead
          titles={["Service and endpoint", "Node"]}
          numbers={["Connections", "Unanswered", "Sent", "Received"]}
        />
        {traffic.map((service) => (
          <tbody key={`${service.service} ${service.protocol} ${service.port} ${service.owner}`}>
            <ServiceRow service={service} names={names} />
            {service.endpoints.map((one) => (
              <tr key={one.endpoint === undefined ? `${one.relayed}` : socket(one.endpoint.address, one.endpoint.port)}>
                <td class="inner">
                  <FlowEnd endpoint={one.endpoint} relayed={one.relayed} />
                </td>
                <td>{one.endpoint?.nodeName ?? "–"}</td>
                <Counts of={one} />
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </Scroll>
  );
}

function ServiceRow({ service, names }: { readonly service: ServiceTraffic; readonly names: boolean }) {
  const { service: key, port, protocol, owner } = service;
  const at = `${protocol.toLowerCase()}${port === "" ? "" : ` port ${port}`}`;
  return (
    <tr>
      <th scope="row" colSpan={2}>
        {names && <a href={serviceAddress(key)}>{key}</a>} <span class="quiet">{at}</span>{" "}
        {owner !== "ours" && <Owner ownership={owner} />}
      </th>
      <Counts of={service} />
    </tr>
  );
}

function Counts({ of }: { readonly of: ServiceTraffic["endpoints"][number] }) {
  return (
    <>
      <td class="number">{of.connections}</td>
      <td class="number">{of.unreplied === 0 ? "–" : of.unreplied}</td>
      <td class="number">
        <Volume volume={of.sent} />
      </td>
      <td class="number">
        <Volume volume={of.received} />
      </td>
    </>
  );
}

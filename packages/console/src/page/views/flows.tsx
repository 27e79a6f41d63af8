import type { Flow } from "@fairlead/inspect";
import { useEffect } from "preact/hooks";
import type { FlowsAnswer } from "../../protocol.ts";
import { socket } from "../findings.ts";
import { Age, NodeChoice, Table, Volume, Waiting, Watched } from "../parts/common.tsx";
import { Curves, FlowEnd, Traffic } from "../parts/traffic.tsx";
import { addressOf, go, serviceAddress } from "../router.ts";
import { type Polled, type Store, usePolled } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly query: URLSearchParams;
}

/** The connections of services that a node tracks, for as long as they are in view. */
export function FlowsView({ store, query }: Props) {
  const { facts } = store;
  const service = query.get("service") ?? "";
  const node = query.get("node") ?? facts?.node ?? "";
  useEffect(() => store.look([]), [store]);
  return (
    <>
      {facts?.kernels === true ? (
        <Flows key={`${node} ${service}`} store={store} service={service} node={node} />
      ) : (
        <>
          <div class="head">
            <h1>Flows</h1>
          </div>
          <p class="quiet">
            Connections are what a node's kernel tracks. Add --live, or look at a cluster, to see them.
          </p>
        </>
      )}
    </>
  );
}

function Flows({ store, service, node }: { readonly store: Store; readonly service: string; readonly node: string }) {
  const polled = usePolled<FlowsAnswer>(`api/flows?${new URLSearchParams({ node, ...(service && { service }) })}`);
  const answer = polled.asked.state === "answered" ? polled.asked.answer : undefined;
  const place = (changed: Readonly<Record<string, string>>) => addressOf("flows", [], { node, service, ...changed });
  return (
    <>
      <div class="head">
        <h1>Flows</h1>
        {answer !== undefined && <Age source={`connections of ${node}`} at={answer.at} />}
      </div>
      <div class="tools">
        <NodeChoice label="Tracked on node" store={store} node={node} onNode={(name) => go(place({ node: name }))} />
        <Watched polled={polled} />
        {service !== "" && (
          <span>
            Only <a href={serviceAddress(service)}>{service}</a>. <a href={place({ service: "" })}>All services</a>
          </span>
        )}
      </div>
      <Listed asked={polled.asked} node={node} />
    </>
  );
}

function Listed({ asked, node }: { readonly asked: Polled<FlowsAnswer>["asked"]; readonly node: string }) {
  if (asked.state !== "answered") return <Waiting asked={asked} of={node} />;
  const { answer } = asked;
  return (
    <>
      <div class="panel">
        <Curves answer={answer} />
      </div>
      <section class="panel" aria-label="By service and endpoint">
        <h2>By service and endpoint</h2>
        <Traffic answer={answer} names />
        {answer.more.services > 0 && (
          <p class="quiet">
            and {answer.more.services} more: <code class="rule">fairlead top --on {node}</code> has all
          </p>
        )}
      </section>
      {answer.flows.length > 0 && (
        <section class="panel" aria-label="Connections">
          <h2>Connections</h2>
          <Connections flows={answer.flows} />
          {answer.more.flows > 0 && (
            <p class="quiet">
              and {answer.more.flows} more: <code class="rule">fairlead flows --on {node}</code> has all
            </p>
          )}
        </section>
      )}
    </>
  );
}

function Connections({ flows }: { readonly flows: readonly Flow[] }) {
  return (
    <Table
      label="Connections"
      rows={flows}
      keyOf={flowKey}
      columns={[
        ["Client", ({ client }) => socket(client.address, client.port), "mono"],
        [
          "Called",
          ({ protocol, frontend }) => `${protocol.toLowerCase()} ${socket(frontend.address, frontend.port)}`,
          "mono",
        ],
        [
          "Service",
          ({ service, port }) => [<a href={serviceAddress(service)}>{service}</a>, port === "" ? "" : `:${port}`],
        ],
        ["Answered by", ({ endpoint, relayed }) => <FlowEnd endpoint={endpoint} relayed={relayed} />],
        ["State", ({ state, replied }) => [state?.toLowerCase() ?? [], replied ? [] : "unanswered"].flat().join(", ")],
        ["Sent", ({ sent }) => <Volume volume={sent} />, "number"],
        ["Received", ({ received }) => <Volume volume={received} />, "number"],
      ]}
    />
  );
}

function flowKey({ protocol, client, frontend }: Flow): string {
  return `${protocol} ${socket(client.address, client.port)} ${socket(frontend.address, frontend.port)}`;
}

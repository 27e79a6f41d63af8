/** The page of one Service: ports, kernels, traffic, owners over time. */

import type { Ownership } from "@fairlead/core";
import type { FamilyExplanation } from "@fairlead/inspect";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { FlowsAnswer, NodeRow, ServiceAnswer } from "../../protocol.ts";
import { agentVerdict, type Difference, differencesOf, isAbout, kernelVerdict, type Verdict } from "../findings.ts";
import {
  Age,
  Badge,
  Failures,
  Findings,
  Looked,
  NodeChoice,
  Owner,
  Table,
  Waiting,
  Watched,
} from "../parts/common.tsx";
import { ServicePort } from "../parts/service-port.tsx";
import { Curves, Traffic } from "../parts/traffic.tsx";
import { addressOf, go } from "../router.ts";
import { type Store, useAnswer, usePolled } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly service: string;
  /** "": the one that the console looks from. */
  readonly node: string;
}

export function ServiceView({ store, service, node }: Props) {
  const path = `api/service?${new URLSearchParams({ target: service, ...(node !== "" && { node }) })}`;
  // Another row: the service or its endpoints changed.
  const asked = useAnswer<ServiceAnswer>(path, store.rows.get(service) ?? store.objectsAt);
  const from = node === "" ? (store.facts?.node ?? "") : node;
  const nodes = useMemo(() => nodesOf(asked.state === "answered" ? asked.answer : undefined, from), [asked, from]);
  useEffect(() => store.look(store.facts?.kernels === true ? nodes : []), [nodes.join(), store.facts]);
  if (asked.state !== "answered") return <Waiting title={service} asked={asked} />;
  const { explanation, planAt, learnedFrom, owners } = asked.answer;
  const differences = [...store.nodes.values()].flatMap(differencesOf).filter((one) => isAbout(one, service));
  return (
    <>
      <div class="head">
        <h1>{service}</h1>
        {differences.length > 0 && <Badge tone="bad" text="differs from the plan" />}
        <Age source={`plan of ${explanation.node}`} at={planAt} />
      </div>
      <div class="tools">
        <NodeChoice
          label="Seen from node"
          store={store}
          node={from}
          onNode={(name) => go(addressOf("service", service.split("/"), { node: name }))}
        />
      </div>
      {explanation.gateway !== undefined && (
        <p>
          It is Gateway {explanation.gateway}'s, whose routes are in{" "}
          <span class="mono">fairlead explain gateway {explanation.gateway}</span>.
        </p>
      )}
      {store.facts?.kernels === true && <Kernels store={store} nodes={nodes} differences={differences} />}
      {explanation.families.map((family) => (
        <Family key={family.family} family={family} learnedFrom={learnedFrom} service={service} node={from} />
      ))}
      {explanation.families.length === 0 && <p class="quiet">It has no ClusterIP in a family that is proxied.</p>}
      {store.facts?.kernels === true && <ServiceTraffic key={`${service} ${from}`} service={service} node={from} />}
      <OwnerHistory history={owners} />
    </>
  );
}

function nodesOf(answer: ServiceAnswer | undefined, from: string): readonly string[] {
  const families = answer?.explanation.families ?? [];
  const endpoints = families.flatMap(({ ports }) => ports.flatMap((port) => port.endpoints));
  const others = endpoints.flatMap(({ nodeName }) => nodeName ?? []);
  return [...new Set([from, ...others])].slice(0, 8);
}

function Family({
  family,
  learnedFrom,
  service,
  node,
}: {
  readonly family: FamilyExplanation;
  readonly learnedFrom: ServiceAnswer["learnedFrom"];
  readonly service: string;
  readonly node: string;
}) {
  const { ownership, policies, ports } = family;
  const { internalTrafficPolicy, externalTrafficPolicy, affinitySeconds, loadBalancerSourceRanges } = policies;
  const { nodePortSourceRanges, refusesWithoutLocal } = policies;
  const facts = [
    `internal policy ${internalTrafficPolicy}`,
    `external policy ${externalTrafficPolicy}`,
    ...(affinitySeconds === undefined ? [] : [`a client stays with its endpoint for ${affinitySeconds} s`]),
    ...(loadBalancerSourceRanges.length === 0 ? [] : [`load balancer for ${loadBalancerSourceRanges.join(", ")} only`]),
    ...(nodePortSourceRanges === undefined
      ? []
      : [`node ports for ${nodePortSourceRanges.ranges.join(", ") || "no client"} only`]),
    ...(refusesWithoutLocal ? ["clients are refused where Local finds no endpoint"] : []),
  ];
  return (
    <section class="panel" aria-label={family.family}>
      <h2>
        {family.family} <Owner ownership={ownership.ownership} />
      </h2>
      <p>
        {ownership.why}
        {family.remembered !== undefined && `; remembered as ${family.remembered}`}.{" "}
        <span class="quiet">{facts.join(" · ")}</span>
      </p>
      {family.podNetwork !== undefined && (
        <p>
          Its pods are in {family.podNetwork.kind} <span class="mono">{family.podNetwork.name}</span>
          {family.podNetwork.addresses !== undefined && `, at ${family.podNetwork.addresses.slice(0, 3).join(", ")}`}:{" "}
          <span class="quiet">{family.podNetwork.why}</span>
        </p>
      )}
      {learnedFrom
        .filter(({ cidr }) => ownership.decidingCIDRs.includes(cidr))
        .map(({ cidr, objects, since }) => (
          <p key={cidr} class="quiet">
            <span class="mono">{cidr}</span> is learned from {objects.join(", ")}
            {since !== undefined && `, since ${new Date(since).toLocaleString()}`}
          </p>
        ))}
      {ports.map((port) => (
        <ServicePort key={`${port.protocol} ${port.name}`} port={port} service={service} node={node} />
      ))}
    </section>
  );
}

interface KernelsProps {
  readonly store: Store;
  readonly nodes: readonly string[];
  /** Of the service that is shown. */
  readonly differences: readonly Difference[];
}

/** The plan against the kernels of the nodes that matter to a service. */
function Kernels({ store, nodes, differences }: KernelsProps) {
  const rows = nodes.flatMap((node) => store.nodes.get(node) ?? []);
  const inKernel = (node: string, kernel: NodeRow["kernel"]): Verdict => {
    if (kernel?.state !== "read") return kernelVerdict(kernel);
    const differs = differences.some((one) => one.node === node);
    return differs ? { tone: "bad", text: "differs" } : { tone: "good", text: "as planned" };
  };
  return (
    <section class="panel" aria-label="Plan and kernel">
      <h2>Plan and kernel</h2>
      <Table
        label="Plan and kernel"
        rows={rows}
        keyOf={({ node }) => node}
        columns={[
          ["Node", ({ node }) => node],
          ["Agent", (row) => <Looked verdict={agentVerdict(row)} looked={row.agent} />],
          [
            "This service in its kernel",
            ({ node, kernel }) => <Looked verdict={inKernel(node, kernel)} looked={kernel} />,
          ],
        ]}
      />
      <Failures looks={rows.flatMap(({ node, agent, kernel }) => [[node, agent] as const, [node, kernel] as const])} />
      <Findings differences={differences} />
    </section>
  );
}

/** Who served a service before: what this console has seen, and nothing from before it was started. */
function OwnerHistory({ history: { since, changes } }: { readonly history: ServiceAnswer["owners"] }) {
  return (
    <section class="panel" aria-label="Owners before">
      <h2>Owners before</h2>
      {changes.length === 0 ? (
        <p class="quiet">Nothing has changed since this console was started at {timeText(since)}.</p>
      ) : (
        <>
          <p class="quiet">Since this console was started at {timeText(since)}; it knows nothing from before.</p>
          <Table
            label="Owners before"
            rows={changes.toReversed()}
            keyOf={({ at, family }) => `${at} ${family}`}
            columns={[
              ["At", ({ at }) => timeText(at)],
              ["Family", ({ family }) => family],
              ["Before", ({ before }) => <Known ownership={before} />],
              ["Then", ({ after }) => <Known ownership={after} />],
              ["Why", ({ why }) => why ?? "–"],
            ]}
          />
        </>
      )}
    </section>
  );
}

/** Without one the service was not there, or had no ClusterIP of the family. */
function Known({ ownership }: { readonly ownership: Ownership | undefined }) {
  return ownership === undefined ? <span class="quiet">no network's</span> : <Owner ownership={ownership} />;
}

function timeText(at: number): string {
  return new Date(at).toLocaleTimeString();
}

interface TrafficProps {
  readonly service: string;
  readonly node: string;
}

/** What the endpoints of a service have to do for the clients of a node, on request. */
function ServiceTraffic({ service, node }: TrafficProps) {
  const [shown, setShown] = useState(false);
  return (
    <section class="panel" aria-label="Connections">
      <h2>Connections</h2>
      {shown ? (
        <Watch service={service} node={node} />
      ) : (
        <p>
          <button type="button" onClick={() => setShown(true)}>
            Count connections on {node}
          </button>
        </p>
      )}
    </section>
  );
}

function Watch({ service, node }: TrafficProps) {
  const polled = usePolled<FlowsAnswer>(`api/flows?${new URLSearchParams({ node, service })}`);
  const { asked } = polled;
  return (
    <>
      <div class="tools">
        <Watched polled={polled} />
        <a href={addressOf("flows", [], { node, service })}>each connection</a>
        {asked.state === "answered" && <Age source={`connections of ${node}`} at={asked.answer.at} />}
      </div>
      {asked.state === "answered" ? (
        <>
          <Curves answer={asked.answer} />
          <Traffic answer={asked.answer} names={false} />
        </>
      ) : (
        <Waiting asked={asked} of={node} />
      )}
    </>
  );
}

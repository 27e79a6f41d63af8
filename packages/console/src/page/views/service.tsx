import type { FamilyExplanation } from "@fairlead/inspect";
import { useEffect, useMemo } from "preact/hooks";
import type { ServiceAnswer } from "../../protocol/index.ts";
import { useAnswer } from "../ask.ts";
import { differencesOf, isAbout } from "../findings.ts";
import { Age } from "../parts/age.tsx";
import { Badge, Owner } from "../parts/badge.tsx";
import { Kernels } from "../parts/kernels.tsx";
import { NodeChoice } from "../parts/node-choice.tsx";
import { OwnerHistory } from "../parts/owner-history.tsx";
import { ServicePort } from "../parts/service-port.tsx";
import { ServiceTraffic } from "../parts/service-traffic.tsx";
import { Waiting } from "../parts/waiting.tsx";
import { addressOf, go } from "../router.ts";
import type { Store } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly service: string;
  /** "": the one that the console looks from. */
  readonly node: string;
}

/** Everything that decides about a service on a node. */
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

/** The node that is looked from, and those with endpoints. */
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
  const facts = [
    `internal policy ${internalTrafficPolicy}`,
    `external policy ${externalTrafficPolicy}`,
    ...(affinitySeconds === undefined ? [] : [`a client stays with its endpoint for ${affinitySeconds} s`]),
    ...(loadBalancerSourceRanges.length === 0 ? [] : [`load balancer for ${loadBalancerSourceRanges.join(", ")} only`]),
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

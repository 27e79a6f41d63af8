import type { EndpointFate, Membership, Treatment } from "@fairlead/core";
import type { FamilyExplanation, FrontendExplanation, LostFrontend, PortExplanation } from "@fairlead/inspect";
import { useEffect, useMemo } from "preact/hooks";
import type { ServiceAnswer } from "../../protocol.ts";
import { useAnswer } from "../ask.ts";
import { differencesOf, isAbout } from "../findings.ts";
import { Age } from "../parts/age.tsx";
import { Badge, Owner } from "../parts/badge.tsx";
import { Kernels } from "../parts/kernels.tsx";
import { Waiting } from "../parts/waiting.tsx";
import { WayPicture } from "../parts/way-picture.tsx";
import { addressOf, go } from "../router.ts";
import { socket } from "../socket.ts";
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
  const { explanation, planAt } = asked.answer;
  const differences = [...store.nodes.values()].flatMap(differencesOf).filter((one) => isAbout(one, service));
  return (
    <>
      <div class="head">
        <h1>{service}</h1>
        {differences.length > 0 && <Badge tone="bad" text="differs from the plan" />}
        <Age source={`plan of ${explanation.node}`} at={planAt} />
      </div>
      <NodeChoice store={store} service={service} from={from} />
      {store.facts?.kernels === true && <Kernels store={store} nodes={nodes} differences={differences} />}
      {explanation.families.map((family) => (
        <Family key={family.family} family={family} service={service} node={from} />
      ))}
      {explanation.families.length === 0 && <p class="quiet">It has no ClusterIP in a family that is proxied.</p>}
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

function NodeChoice({
  store,
  service,
  from,
}: {
  readonly store: Store;
  readonly service: string;
  readonly from: string;
}) {
  const names = [...new Set([from, ...store.nodes.keys()])].sort();
  const slash = service.indexOf("/");
  const path = [service.slice(0, slash), service.slice(slash + 1)];
  return (
    <div class="tools">
      <label>
        Seen from node
        <select value={from} onChange={(event) => go(addressOf("service", path, { node: event.currentTarget.value }))}>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Family({
  family,
  service,
  node,
}: {
  readonly family: FamilyExplanation;
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
      {ports.map((port) => (
        <Port key={`${port.protocol} ${port.name}`} port={port} service={service} node={node} />
      ))}
    </section>
  );
}

function Port({
  port,
  service,
  node,
}: {
  readonly port: PortExplanation;
  readonly service: string;
  readonly node: string;
}) {
  const { name, protocol, frontends, lost, endpoints } = port;
  return (
    <>
      <h3>
        {protocol} {name === "" ? "" : `port ${name}`}
      </h3>
      <WayPicture port={port} service={service} node={node} />
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Frontend</th>
              <th scope="col">from pods</th>
              <th scope="col">from the node</th>
              <th scope="col">from outside</th>
            </tr>
          </thead>
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
      </div>
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
        {frontend.policy === "Local" ? " (Local)" : ""}
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
      <thead>
        <tr>
          <th scope="col">Endpoint</th>
          <th scope="col">Node</th>
          <th scope="col">Cluster set</th>
          <th scope="col">Local set</th>
          <th scope="col">Slice</th>
        </tr>
      </thead>
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

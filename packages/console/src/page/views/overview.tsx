/** The first page: what differs, the nodes, where traffic goes, and objects that cannot be used. */

import { useEffect, useMemo } from "preact/hooks";
import type { NodeRow, ServiceRow, UnusableAnswer } from "../../protocol.ts";
import { agentVerdict, type Difference, differingServices, kernelVerdict, type Verdict } from "../findings.ts";
import { Age, Badge, Failures, Findings, Looked, Table, TableHead } from "../parts/common.tsx";
import { Ways } from "../parts/ways.tsx";
import { addressOf, serviceAddress } from "../router.ts";
import { type Store, useRunning } from "../store.ts";

/** As many nodes are looked at without being asked for. */
const MOST_NODES = 12;

/** What one looks at first: what differs and the nodes, and next to them where traffic goes. */
export function OverviewView({ store }: { readonly store: Store }) {
  const { facts, revision } = store;
  const kernels = facts?.kernels === true;
  const nodes = useMemo(() => [...store.nodes.values()], [revision]);
  const shown = nodes.slice(0, MOST_NODES);
  const names = shown.map(({ node }) => node).join();
  const traffic = useRunning("traffic");
  useEffect(
    () => store.look(kernels ? names.split(",") : [], kernels && traffic.running),
    [names, kernels, traffic.running],
  );
  const differing = useMemo(() => differingServices(shown), [revision]);
  return (
    <>
      <div class="head">
        <h1>Overview</h1>
        <Age source={facts?.source ?? ""} at={store.objectsAt} />
      </div>
      <Tiles rows={store.rows.values()} nodes={kernels ? shown : undefined} differing={differing.size} />
      <div class="overview">
        <div>
          <Differing differing={differing} services={store.rows.size} />
          <Unusable unusable={store.unusable} />
          <Nodes nodes={shown} all={nodes.length} kernels={kernels} forbidden={store.source.nodesForbidden === true} />
        </div>
        <Ways nodes={kernels ? shown : undefined} watched={traffic} />
      </div>
    </>
  );
}

interface NodesProps {
  readonly nodes: readonly NodeRow[];
  /** How many there are. */
  readonly all: number;
  /** Whether they can be looked at. */
  readonly kernels: boolean;
  /** Whether their objects cannot be read. */
  readonly forbidden: boolean;
}

function Nodes({ nodes, all, kernels, forbidden }: NodesProps) {
  return (
    <section class="panel" aria-label="Nodes">
      <h2>Nodes {kernels && <Badge {...clusterVerdict(nodes)} />}</h2>
      {!kernels && (
        <p class="quiet">
          This is what agents are to do. Add --live, or look at a cluster, to compare it with what kernels do.
        </p>
      )}
      {forbidden && (
        <p class="notice warn">
          You may not list Nodes: zones and addresses are unknown, so topology and node ports may be planned differently
          than on the node. The verbs get, list and watch of nodes let the console read them.
        </p>
      )}
      <table class="nodes">
        <TableHead titles={["Node", "Agent", "Kernel"]} />
        <tbody>
          {nodes.map((row) => (
            <Node key={row.node} row={row} />
          ))}
        </tbody>
      </table>
      <Failures looks={nodes.flatMap(({ node, agent, kernel }) => [[node, agent] as const, [node, kernel] as const])} />
      {all > nodes.length && (
        <p class="quiet">
          {nodes.length} of {all} nodes: each that is shown is asked again and again.
        </p>
      )}
    </section>
  );
}

/** Of the nodes that are shown: what has not been looked at is not as planned. */
function clusterVerdict(nodes: readonly NodeRow[]): Verdict {
  const verdicts = nodes.map(({ kernel }) => kernelVerdict(kernel));
  const [bad, good] = [verdicts.filter(({ tone }) => tone === "bad"), verdicts.filter(({ tone }) => tone === "good")];
  const of = (count: number) => `${count} of ${nodes.length}`;
  if (bad.length > 0) return { tone: "bad", text: `${of(bad.length)} ${bad.length === 1 ? "differs" : "differ"}` };
  return { tone: good.length === nodes.length ? "good" : "plain", text: `${of(good.length)} as planned` };
}

function Node({ row }: { readonly row: NodeRow }) {
  const { node, zone, addresses, deleted, agent, kernel } = row;
  const facts = agent?.state === "read" ? agent.value : {};
  const about = [facts.mode, facts.version, facts.serviceProxyName].filter((one) => one !== undefined);
  return (
    <tr>
      <th scope="row">
        <a href={addressOf("doctor", [], { node })}>{node}</a>{" "}
        {deleted === true && <Badge tone="warn" text="deleted" />}
        <div class="quiet">{[zone, ...addresses].filter((one) => one !== undefined).join(" · ")}</div>
      </th>
      <td>
        <Looked verdict={agentVerdict(row)} looked={agent} />
        <div class="quiet">
          {about.join(" · ")} {facts.lastSync !== undefined && <Age source="synced" at={Date.parse(facts.lastSync)} />}
        </div>
      </td>
      <td>
        <Looked verdict={kernelVerdict(kernel)} looked={kernel} />
      </td>
    </tr>
  );
}

/** More that differ belong in the list of services: they have one cause, or are too many to read here. */
const MOST_SERVICES = 10;

interface DifferingProps {
  readonly differing: ReadonlyMap<string, readonly Difference[]>;
  /** All that there are. */
  readonly services: number;
}

function Differing({ differing, services }: DifferingProps) {
  if (differing.size === 0) return null;
  const more = differing.size - MOST_SERVICES;
  return (
    <section class="panel" aria-label="What differs">
      <h2>What differs from the plan</h2>
      {differing.size > 1 && differing.size * 2 > services && (
        <p class="notice warn">
          More than half of all services differ. This looks like another configuration: compare the mode and the cluster
          CIDRs that this console goes by with those of the agents.
        </p>
      )}
      {[...differing].slice(0, MOST_SERVICES).map(([service, found]) => (
        <div key={service}>
          <h3>{service === "" ? "All services" : <a href={serviceAddress(service)}>{service}</a>}</h3>
          <Findings differences={found} />
        </div>
      ))}
      {more > 0 && (
        <p>
          and <a href={addressOf("services", [], { state: "differs" })}>{more} more services</a>
        </p>
      )}
    </section>
  );
}

interface TilesProps {
  readonly rows: Iterable<ServiceRow>;
  /** Undefined: no kernel is looked at. */
  readonly nodes: readonly NodeRow[] | undefined;
  /** Services that differ on those that have been looked at. */
  readonly differing: number;
}

/** How many services of each kind; each leads to the list of those. */
function Tiles({ rows, nodes, differing }: TilesProps) {
  const counts = { ours: 0, mixed: 0, foreign: 0 };
  let all = 0;
  let [without, draining] = [0, 0];
  for (const row of rows) {
    const { owners } = row;
    all += 1;
    if (row.ready === 0) without += 1;
    if (row.draining > 0) draining += 1;
    for (const owner of new Set(Object.values(owners))) counts[owner] += 1;
  }
  const tiles = [
    ["services", all, {}],
    ["ours", counts.ours, { owner: "ours" }],
    ["mixed", counts.mixed, { owner: "mixed" }],
    ["another network's", counts.foreign, { owner: "foreign" }],
    ["no ready endpoint", without, { state: "unready" }],
    ["draining", draining, { state: "draining" }],
    ...(nodes === undefined ? [] : [differTile(nodes, differing)]),
  ] as const;
  return (
    <div class="tiles">
      {tiles.map(([title, count, query]) => (
        <a class="tile" key={title} href={addressOf("services", [], query)}>
          <b>{count}</b>
          {title}
        </a>
      ))}
    </div>
  );
}

/** Zero is said of what has been looked at only. */
function differTile(nodes: readonly NodeRow[], differing: number) {
  const read = nodes.filter(({ kernel }) => kernel?.state === "read").length;
  const on = read === nodes.length ? "" : ` on ${read} of ${nodes.length} nodes`;
  return [`differ${on}`, read === 0 ? "–" : differing, { state: "differs" }] as const;
}

/** Objects that agents leave out, or take without some of their fields, and why. */
function Unusable({ unusable: { objects, rows } }: { readonly unusable: UnusableAnswer }) {
  if (objects === 0) return null;
  const listed = new Set(rows.map(({ object }) => object)).size;
  return (
    <section class="panel" aria-label="Objects that cannot be read">
      <h2>
        {objects} {objects === 1 ? "object" : "objects"} cannot be read, or not whole
      </h2>
      <Table
        label="Objects that cannot be read"
        rows={rows}
        keyOf={({ object, field, why }) => `${object} ${field} ${why}`}
        columns={[
          ["Object", ({ object }) => object],
          ["Field", ({ field }) => field || "–", "mono"],
          ["Value", ({ value }) => value || "–", "mono"],
          ["Why", ({ why, file }) => [why, file !== undefined && <div class="quiet">{file}</div>]],
          ["Found", ({ at }) => <Age at={at} />],
        ]}
      />
      {objects > listed && <p class="quiet">and {objects - listed} more objects</p>}
    </section>
  );
}

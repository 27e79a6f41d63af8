/** The first page: nodes, sources, owners, and objects that cannot be used. */

import { useEffect, useMemo } from "preact/hooks";
import type { NodeRow, ServiceRow, UnusableAnswer } from "../../protocol.ts";
import { agentVerdict, type Difference, differingServices, kernelVerdict } from "../findings.ts";
import { Age, Badge, Findings, Scroll, TableHead } from "../parts/common.tsx";
import { addressOf, serviceAddress } from "../router.ts";
import type { Store } from "../store.ts";

/** As many nodes are looked at without being asked for. */
const MOST_NODES = 12;

/** What differs first, then nodes, then services by owner. */
export function OverviewView({ store }: { readonly store: Store }) {
  const { facts, revision } = store;
  const nodes = useMemo(() => [...store.nodes.values()], [revision]);
  const shown = nodes.slice(0, MOST_NODES);
  const names = shown.map(({ node }) => node).join();
  useEffect(() => store.look(facts?.kernels === true ? names.split(",") : []), [names, facts]);
  const differing = useMemo(() => differingServices(shown), [revision]);
  return (
    <>
      <div class="head">
        <h1>Overview</h1>
        <Age source={facts?.source ?? ""} at={store.objectsAt} />
      </div>
      <Tiles rows={store.rows.values()} differing={facts?.kernels === true ? differing.size : undefined} />
      <Differing differing={differing} kernels={facts?.kernels === true} services={store.rows.size} />
      <Unusable unusable={store.unusable} />
      <h2>Nodes</h2>
      <div class="panel">
        {store.source.nodesForbidden === true && (
          <p class="notice warn">
            You may not list Nodes: zones and addresses are unknown, so topology and node ports may be planned
            differently than on the node. The verbs get, list and watch of nodes let the console read them.
          </p>
        )}
        <Scroll label="Nodes">
          <table>
            <TableHead titles={["Node", "Zone", "Addresses", "Agent", "Mode", "Last sync", "Kernel"]} />
            <tbody>
              {shown.map((row) => (
                <Node key={row.node} row={row} />
              ))}
            </tbody>
          </table>
        </Scroll>
        {nodes.length > shown.length && (
          <p class="quiet">
            {shown.length} of {nodes.length} nodes: each that is shown is asked again and again.
          </p>
        )}
      </div>
    </>
  );
}

/** More that differ are for the list of services: they have one cause, or nobody reads them here. */
const MOST_SERVICES = 10;

function Differing({
  differing,
  kernels,
  services,
}: {
  readonly differing: ReadonlyMap<string, readonly Difference[]>;
  readonly kernels: boolean;
  /** All that there are. */
  readonly services: number;
}) {
  if (!kernels) {
    return (
      <p class="quiet">
        This is what agents are to do. Add --live, or look at a cluster, to compare it with what kernels do.
      </p>
    );
  }
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
  readonly differing: number | undefined;
}

/** How many services of each kind; each leads to the list of those. */
function Tiles({ rows, differing }: TilesProps) {
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
    ...(differing === undefined ? [] : [["differ", differing, { state: "differs" }] as const]),
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

function Node({ row }: { readonly row: NodeRow }) {
  const { node, zone, addresses, deleted, agent, kernel } = row;
  const facts = agent?.state === "read" ? agent.value : undefined;
  return (
    <tr>
      <th scope="row">
        {node} {deleted === true && <Badge tone="warn" text="deleted" />}
      </th>
      <td>{zone ?? "–"}</td>
      <td class="mono">{addresses.join(" ")}</td>
      <td>
        <Badge {...agentVerdict(row)} />
        {agent !== undefined && <Age source="" at={agent.at} />}
        {agent?.state === "failed" && <div class="quiet">{agent.error}</div>}
        {facts?.version !== undefined && <span class="quiet"> {facts.version}</span>}
      </td>
      <td>
        {facts?.mode ?? "–"}
        {facts?.serviceProxyName !== undefined && <span class="quiet"> {facts.serviceProxyName}</span>}
      </td>
      <td>{facts?.lastSync === undefined ? "–" : <Age source="synced" at={Date.parse(facts.lastSync)} />}</td>
      <td>
        <Badge {...kernelVerdict(kernel)} />
        {kernel !== undefined && <Age source="" at={kernel.at} />}
        {kernel?.state === "failed" && <div class="quiet">{kernel.error}</div>}
      </td>
    </tr>
  );
}

/** Objects that agents leave out, or take without some of their fields, and why. */
function Unusable({ unusable: { objects, rows } }: { readonly unusable: UnusableAnswer }) {
  if (objects === 0) return null;
  const told = new Set(rows.map(({ object }) => object)).size;
  return (
    <section class="panel" aria-label="Objects that cannot be read">
      <h2>
        {objects} {objects === 1 ? "object" : "objects"} cannot be read, or not whole
      </h2>
      <Scroll label="Objects that cannot be read">
        <table>
          <TableHead titles={["Object", "Field", "Value", "Why", "Found"]} />
          <tbody>
            {rows.map(({ object, at, field, value, why, file }) => (
              <tr key={`${object} ${field} ${why}`}>
                <th scope="row">{object}</th>
                <td class="mono">{field === "" ? "–" : field}</td>
                <td class="mono">{value === "" ? "–" : value}</td>
                <td>
                  {why}
                  {file !== undefined && <div class="quiet">{file}</div>}
                </td>
                <td>
                  <Age source="" at={at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {objects > told && <p class="quiet">and {objects - told} more objects</p>}
    </section>
  );
}

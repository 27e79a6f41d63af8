/** Where traffic goes: frontends, services and nodes, side by side. */

import type { NodeRow } from "../../protocol.ts";
import { merged, type WayBand, type WayBox, type WayPicture, wayPicture } from "../../ways.ts";
import { addressOf, serviceAddress } from "../router.ts";
import type { Running } from "../store.ts";
import { Age, Asking, bytesText, Failures, Table, Watched } from "./common.tsx";

interface WaysProps {
  /** Whose connections are summed up; undefined: none can be. */
  readonly nodes: readonly NodeRow[] | undefined;
  readonly watched: Running;
}

/** Connections by frontend, service and node, as a picture and as a table. */
export function Ways({ nodes, watched }: WaysProps) {
  return (
    <section class="panel" aria-label="Where traffic goes">
      <div class="title">
        <h2>Where traffic goes</h2>
        {nodes !== undefined && <Watched polled={watched} />}
      </div>
      {nodes === undefined ? (
        <p class="quiet">Connections are what nodes' kernels track. Add --live, or look at a cluster, to see them.</p>
      ) : (
        <Tracked nodes={nodes} />
      )}
    </section>
  );
}

function Tracked({ nodes }: { readonly nodes: readonly NodeRow[] }) {
  const read = nodes.flatMap(({ traffic }) => (traffic?.state === "read" ? [traffic] : []));
  const asking = nodes.flatMap(({ node, traffic }) => (traffic?.state === "asking" ? [{ node, at: traffic.at }] : []));
  const ways = merged(read.flatMap(({ value }) => value.ways));
  const rates = read.flatMap(({ value }) => value.since ?? []);
  const on = `${read.length} of ${nodes.length} nodes`;
  return (
    <>
      {read.length > 0 && (
        <p class="age">
          <Age source={`Connections tracked on ${on}`} at={Math.min(...read.map(({ at }) => at))} />
          {rates.length > 0 && `: ${rateText(rates)}`}
        </p>
      )}
      {ways.length > 0 && <Picture picture={wayPicture(ways)} />}
      {ways.length > 0 && <WayTable ways={ways} />}
      {read.length > 0 && ways.length === 0 && <p class="empty">No connection with a service is tracked on {on}.</p>}
      {nodes.every(({ traffic }) => traffic === undefined) && nodes.some(({ kernel }) => kernel !== undefined) && (
        <p class="quiet">No connections are looked at: an archive has none, and --live has its own host's only.</p>
      )}
      {asking.length > 0 && (
        <Asking of={asking.map(({ node }) => node).join(", ")} since={Math.min(...asking.map(({ at }) => at))} />
      )}
      <Failures looks={nodes.map(({ node, traffic }) => [node, traffic] as const)} />
    </>
  );
}

type Ways = ReturnType<typeof merged>;

function rateText(rates: readonly { readonly ms: number; readonly opened: number; readonly bytes?: number }[]): string {
  const second = (of: (rate: (typeof rates)[number]) => number) =>
    rates.reduce((sum, rate) => sum + (of(rate) * 1_000) / rate.ms, 0);
  const counted = rates.some(({ bytes }) => bytes !== undefined);
  const bytes = counted ? `, ${bytesText(second((rate) => rate.bytes ?? 0))}` : "";
  return `${Math.round(second(({ opened }) => opened) * 10) / 10} new${bytes} a second`;
}

const FRONTENDS: Readonly<Record<string, string>> = {
  "cluster-ip": "ClusterIP",
  "node-port": "Node port",
  "external-ip": "External IP",
  "load-balancer": "Load balancer",
};

const COLUMNS = ["Frontends", "Services", "Nodes"] as const;

function Picture({ picture: { height, columns, bands } }: { readonly picture: WayPicture }) {
  return (
    <div class="ways">
      {COLUMNS.map((title, at) => [
        <div key={title}>
          <h3>{title}</h3>
          <ul aria-label={title} style={{ height: `${height}px` }}>
            {columns[at]?.map((box) => (
              <Box key={`${box.kind} ${box.name}`} box={box} column={title} />
            ))}
          </ul>
        </div>,
        bands[at] && <Bands key={`${title} on`} bands={bands[at]} height={height} />,
      ])}
    </div>
  );
}

function Box({ box, column }: { readonly box: WayBox; readonly column: (typeof COLUMNS)[number] }) {
  const { kind, connections, bytes, top, height } = box;
  const name = nameOf(box, column);
  const [namespace, short] = column === "Services" && kind === "one" ? name.split("/") : ["", name];
  const place = column === "Services" ? serviceAddress(box.name) : addressOf("flows", [], { node: box.name });
  const text = [namespace !== "" && <span class="roomy">{namespace}/</span>, short];
  return (
    <li class={kind} style={{ top: `${top}px`, height: `${height}px` }} title={name}>
      {kind === "one" && column !== "Frontends" ? <a href={place}>{text}</a> : <span>{text}</span>}
      <small>
        {connections}
        {bytes !== undefined && <span class="roomy"> · {bytesText(bytes)}</span>}
        {namespace !== "" && <span class="narrow"> · {namespace}</span>}
      </small>
    </li>
  );
}

function nameOf({ kind, name }: Pick<WayBox, "kind" | "name">, column: (typeof COLUMNS)[number]): string {
  if (kind === "gone") return "gone";
  if (kind === "none") return "not translated";
  if (kind === "others") return `other ${column.toLowerCase()}`;
  return column === "Frontends" ? (FRONTENDS[name] ?? name) : name;
}

/** The table below says the same in words. */
function Bands({ bands, height }: { readonly bands: readonly WayBand[]; readonly height: number }) {
  return (
    <svg viewBox={`0 0 100 ${height}`} height={height} preserveAspectRatio="none" aria-hidden="true">
      {bands.map(({ from, to, width, gone }) => (
        <path
          key={`${from} ${to}`}
          class={gone ? "band gone" : "band"}
          d={`M0 ${from} C50 ${from} 50 ${to} 100 ${to} V${to + width} C50 ${to + width} 50 ${from + width} 0 ${from + width} Z`}
        />
      ))}
    </svg>
  );
}

/** As many as one reads. */
const MOST_ROWS = 20;

function WayTable({ ways }: { readonly ways: Ways }) {
  return (
    <details>
      <summary>The same as a table</summary>
      <Table
        label="Where traffic goes, as a table"
        rows={ways.slice(0, MOST_ROWS)}
        keyOf={({ frontend, service, node, gone }) => `${frontend} ${service} ${node} ${gone}`}
        columns={[
          ["Frontend", ({ frontend }) => FRONTENDS[frontend]],
          [
            "Service",
            ({ service }) => (service === "" ? "other services" : <a href={serviceAddress(service)}>{service}</a>),
          ],
          ["Node", ({ node, gone }) => (gone ? "gone: hangs" : node === "" ? "not translated" : node)],
          ["Connections", ({ connections }) => connections, "number"],
          ["Bytes", ({ bytes }) => (bytes === undefined ? "–" : bytesText(bytes)), "number"],
        ]}
      />
      {ways.length > MOST_ROWS && <p class="quiet">and {ways.length - MOST_ROWS} more</p>}
    </details>
  );
}

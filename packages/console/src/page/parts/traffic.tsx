/** Traffic as a table, and as curves over time. */

import type { FlowEndpoint, ServiceTraffic } from "@fairlead/inspect";
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import type { FlowsAnswer } from "../../protocol.ts";
import { socket, type Tone } from "../findings.ts";
import { serviceAddress } from "../router.ts";
import { type Points, pointsOf, type Quantity, type Sample, summaryOf, withSample } from "../samples.ts";
import { Badge, bytesText, Owner, Scroll, Table, TableHead, Volume } from "./common.tsx";
import "uplot/dist/uPlot.min.css";

interface FlowEndProps {
  readonly endpoint?: FlowEndpoint | undefined;
  readonly relayed?: boolean | undefined;
}

const CONDITIONS: Readonly<Record<FlowEndpoint["condition"], readonly [Tone, string]>> = {
  ready: ["good", "ready"],
  terminating: ["warn", "terminating"],
  "not-ready": ["warn", "not ready"],
  gone: ["bad", "gone: hangs"],
};

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

const NUMBERS = ["Connections", "Unanswered", "Sent", "Received"];

/** Connections by service port and endpoint, those with most of them first. */
export function Traffic({ answer, names }: { readonly answer: FlowsAnswer; readonly names: boolean }) {
  const { traffic } = answer;
  if (traffic.length === 0) return <p class="quiet">No connection with a service.</p>;
  return (
    <Scroll label="Connections by service and endpoint">
      <table>
        <TableHead titles={["Service and endpoint", "Node", ...NUMBERS]} numbers={NUMBERS} />
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

/** New connections and bytes a second, since the view was opened; in words and as a table as well. */
export function Curves({ answer }: { readonly answer: FlowsAnswer }) {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  useEffect(() => setSamples((before) => withSample(before, answer)), [answer]);
  return (
    <section aria-label="Over time">
      <h2>Over time</h2>
      <div class="curves">
        <Curve title="New connections a second" samples={samples} quantity="opened" />
        <Curve title="Bytes a second, both ways" samples={samples} quantity="bytes" />
      </div>
      <details>
        <summary>The last looks as a table</summary>
        <Looks samples={samples} />
      </details>
    </section>
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

const TEXTS: Readonly<Record<Quantity, (value: number) => string>> = {
  opened: (value) => String(Math.round(value * 10) / 10),
  bytes: (value) => bytesText(value),
};

interface CurveProps {
  readonly title: string;
  readonly samples: readonly Sample[];
  readonly quantity: Quantity;
}

function Curve({ title, samples, quantity }: CurveProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  useEffect(() => {
    if (place.current === null) return;
    const made = new Plot(place.current, TEXTS[quantity]);
    plot.current = made;
    return () => made.remove();
  }, [quantity]);
  useEffect(() => plot.current?.show(pointsOf(samples, quantity)), [samples, quantity]);
  return (
    <figure>
      <figcaption>
        {title}: <Summary samples={samples} quantity={quantity} />
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

function Summary({ samples, quantity }: Omit<CurveProps, "title">) {
  const summary = summaryOf(samples, quantity);
  if (summary === undefined)
    return <span class="quiet">{samples.length > 1 ? "not counted" : "after the next look"}</span>;
  const { now, least, most, seconds } = summary;
  const text = TEXTS[quantity];
  return (
    <>
      <b>{now === null ? "–" : text(now)}</b>{" "}
      <span class="quiet">
        now, {text(least)} to {text(most)} in {seconds} s
      </span>
    </>
  );
}

/** As many as one reads at once. */
const MOST_ROWS = 15;

function Looks({ samples }: { readonly samples: readonly Sample[] }) {
  const cell = (value: number | null, quantity: Quantity) => (value === null ? "–" : TEXTS[quantity](value));
  return (
    <Table
      label="The last looks"
      rows={samples.slice(-MOST_ROWS).toReversed()}
      keyOf={({ at }) => `${at}`}
      columns={[
        ["At", ({ at }) => new Date(at).toLocaleTimeString()],
        ["New connections a second", ({ opened }) => cell(opened, "opened"), "number"],
        ["Bytes a second", ({ bytes }) => cell(bytes, "bytes"), "number"],
      ]}
    />
  );
}

const HEIGHT = 140;
/** Seconds that a curve shows at least: two looks would else fill it. */
const SPAN = 60;

/** A curve over time in an element, as wide as that; in the page's colors, whichever these are. */
class Plot {
  readonly #plot: UPlot;
  readonly #stop = new AbortController();
  readonly #sizes: ResizeObserver;

  constructor(element: HTMLElement, valueText: (value: number) => string) {
    const color = (name: string) => () => getComputedStyle(element).getPropertyValue(`--${name}`);
    // Without a value the axes would show times of 1970.
    const isEmpty = (plot: UPlot) => plot.data[0].length === 0;
    const axis = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false } };
    const options: UPlot.Options = {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { range: (_plot, first, last) => [Math.min(first, last - SPAN), last] },
        y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
      },
      axes: [
        { ...axis, space: 90, values: (plot, splits) => (isEmpty(plot) ? [] : splits.map(timeText)) },
        { ...axis, size: 70, values: (plot, splits) => (isEmpty(plot) ? [] : splits.map(valueText)) },
      ],
      series: [{}, { stroke: color("accent"), width: 2, points: { show: false } }],
    };
    this.#plot = new UPlot(options, [[], []], element);
    this.#sizes = new ResizeObserver(() => this.#plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    this.#sizes.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", () => this.#plot.redraw(), { signal: this.#stop.signal });
  }

  show(points: Points): void {
    this.#plot.setData(points);
  }

  remove(): void {
    this.#stop.abort();
    this.#sizes.disconnect();
    this.#plot.destroy();
  }
}

/** @param seconds since the epoch */
function timeText(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleTimeString();
}

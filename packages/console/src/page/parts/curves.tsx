import { useEffect, useRef, useState } from "preact/hooks";
import type { FlowsAnswer } from "../../protocol/index.ts";
import { Plot } from "../curve/plot.ts";
import { pointsOf, type Quantity, type Sample, summaryOf, withSample } from "../curve/samples.ts";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";
import { bytesText } from "./volume.tsx";

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
        <Table samples={samples} />
      </details>
    </section>
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

function Table({ samples }: { readonly samples: readonly Sample[] }) {
  const cell = (value: number | null, quantity: Quantity) => (value === null ? "–" : TEXTS[quantity](value));
  return (
    <Scroll label="The last looks">
      <table>
        <TableHead titles={["At"]} numbers={["New connections a second", "Bytes a second"]} />
        <tbody>
          {samples
            .slice(-MOST_ROWS)
            .toReversed()
            .map(({ at, opened, bytes }) => (
              <tr key={at}>
                <th scope="row">{new Date(at).toLocaleTimeString()}</th>
                <td class="number">{cell(opened, "opened")}</td>
                <td class="number">{cell(bytes, "bytes")}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </Scroll>
  );
}

import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Points } from "./samples.ts";

const HEIGHT = 140;
/** Seconds that a curve shows at least: two looks would else fill it. */
const SPAN = 60;

/** A curve over time in an element, as wide as that; in the page's colors, whichever these are. */
export class Plot {
  readonly #plot: UPlot;
  readonly #stop = new AbortController();
  readonly #sizes: ResizeObserver;

  constructor(element: HTMLElement, valueText: (value: number) => string) {
    const color = (name: string) => () => getComputedStyle(element).getPropertyValue(`--${name}`);
    // Without a value the axes would tell times of 1970.
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

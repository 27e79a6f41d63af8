import type { GrowthPoint } from "../measure/growth.ts";

/** A line of the plot: one variant's points. */
export interface Series {
  readonly name: string;
  readonly points: readonly GrowthPoint[];
}

const WIDTH = 720;
const HEIGHT = 360;
const MARGIN = { left: 70, right: 20, top: 40, bottom: 45 };
const COLORS = ["#1f6feb", "#cf222e"];

/** The plots that docs/performance.md shows, by file name. */
export function plots(growth: readonly Series[]): Readonly<Record<string, string>> {
  if (growth.length === 0) return {};
  const change = "one endpoint change until the kernel has it";
  return {
    "growth-change.svg": growthPlot(change, growth, (point) => point.endpointChange.ms),
    "growth-start.svg": growthPlot("start to first complete sync", growth, (point) => point.firstSync.ms),
  };
}

/** Both axes are logarithmic: what grows with the number of services is a straight slope, what does not lies flat. */
export function growthPlot(title: string, series: readonly Series[], value: (point: GrowthPoint) => number): string {
  const all = series.flatMap(({ points }) => points);
  const x = scale(
    all.map(({ services }) => services),
    MARGIN.left,
    WIDTH - MARGIN.right,
  );
  const y = scale(all.map(value), HEIGHT - MARGIN.bottom, MARGIN.top);
  const marks = [...new Set(all.map(({ services }) => services))].sort((a, b) => a - b);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(WIDTH / 2, 20, title, "middle"),
    ...decades(all.map(value)).map((at) => gridLine(y(at), at)),
    ...marks.map((at) => text(x(at), HEIGHT - MARGIN.bottom + 18, at.toLocaleString("en"), "middle")),
    text(WIDTH / 2, HEIGHT - 8, "services with 10 endpoints each", "middle"),
    ...series.flatMap((one, index) => drawn(one, index, (point) => [x(point.services), y(value(point))])),
    "</svg>\n",
  ].join("\n");
}

function drawn(
  { name, points }: Series,
  index: number,
  at: (point: GrowthPoint) => readonly [number, number],
): readonly string[] {
  const color = COLORS[index % COLORS.length];
  const places = points.map(at).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
  const dots = points
    .map(at)
    .map(([x, y]) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3" fill="${color}"/>`);
  const legendY = MARGIN.top + 14 + 18 * index;
  return [
    `<polyline points="${places.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...dots,
    `<rect x="${MARGIN.left + 10}" y="${legendY - 9}" width="12" height="10" fill="${color}"/>`,
    text(MARGIN.left + 28, legendY, name, "start"),
  ];
}

function gridLine(y: number, milliseconds: number): string {
  const label = milliseconds >= 1000 ? `${milliseconds / 1000} s` : `${milliseconds} ms`;
  const line = `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="#d0d7de"/>`;
  return `${line}\n${text(MARGIN.left - 6, y + 4, label, "end")}`;
}

/** The powers of ten around the values. */
function decades(values: readonly number[]): readonly number[] {
  const [low, high] = bounds(values);
  return Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
}

function bounds(values: readonly number[]): readonly [number, number] {
  return [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
}

/** From the decades around the values to places between two ends. */
function scale(values: readonly number[], from: number, to: number): (value: number) => number {
  const [low, high] = bounds(values);
  return (value) => from + ((Math.log10(value) - low) / Math.max(1, high - low)) * (to - from);
}

function text(x: number, y: number, words: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="#1f2328">${words}</text>`;
}

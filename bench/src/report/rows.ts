/** The rows of a benchmark's table, and how they are written. */

import { median, type ProxyFigures, quantile, type RunFigures, type Unfinished } from "../measure/result.ts";

export type Unit = "ms" | "CPU ms" | "MB" | "bytes" | "count";

/** A line of the table. */
export interface Row {
  readonly label: string;
  readonly unit: Unit;
  readonly fairlead: number;
  readonly kubeProxy?: number;
  /** kube-proxy had not come to its end by then: what it takes is more, and the ratio less. */
  readonly unfinished?: true;
  /** Fairlead's share of kube-proxy's. */
  readonly ratio?: number;
}

/** The median of all runs. */
const perRun = (of: (run: RunFigures) => number) => (figures: ProxyFigures) => median(figures.runs.map(of));

/** The same of what some runs do not measure; undefined where none did. */
const perTakenRun =
  (of: (run: RunFigures) => number | undefined) =>
  ({ runs }: ProxyFigures) => {
    const taken = runs.flatMap((run) => of(run) ?? []);
    return taken.length === 0 ? undefined : median(taken);
  };

const medianOf = (values: readonly number[] | undefined) => values && median(values);

/** Of the figure above it. */
const API = "– of that until the API server's answer";
const START = "start to first complete sync";

/** One measure of one proxy, or undefined where it was not taken. */
interface Measure {
  readonly label: string;
  readonly unit: Unit;
  readonly of: (figures: ProxyFigures) => number | undefined;
}

const measures: readonly Measure[] = [
  { label: START, unit: "ms", of: perRun((run) => run.firstSync.ms) },
  { label: "– full sync in it", unit: "ms", of: perTakenRun((run) => run.fullSyncMs) },
  { label: "– CPU", unit: "CPU ms", of: perRun((run) => run.firstSync.cpu * 1000) },
  {
    label: "– CPU from exec until 30 s after it",
    unit: "CPU ms",
    of: perTakenRun((run) => run.restedCpu && run.restedCpu * 1000),
  },
  { label: "– bytes from the API server", unit: "bytes", of: perRun((run) => run.firstSync.apiBytes) },
  { label: "one endpoint changes, median", unit: "ms", of: perRun((run) => median(run.endpointChange.ms)) },
  { label: API, unit: "ms", of: perTakenRun((run) => medianOf(run.endpointChange.apiMs)) },
  { label: "– 99th percentile", unit: "ms", of: perRun((run) => quantile(run.endpointChange.ms, 0.99)) },
  { label: "– CPU", unit: "CPU ms", of: perRun((run) => run.endpointChange.cpu * 1000) },
  { label: "a service is added, median", unit: "ms", of: perRun((run) => median(run.serviceAdded.ms)) },
  { label: API, unit: "ms", of: perTakenRun((run) => medianOf(run.serviceAdded.apiMs)) },
  { label: "– CPU", unit: "CPU ms", of: perTakenRun(({ serviceAdded: { cpu } }) => cpu && cpu * 1000) },
  { label: "a service is removed, median", unit: "ms", of: perRun((run) => median(run.serviceRemoved.ms)) },
  { label: API, unit: "ms", of: perTakenRun((run) => medianOf(run.serviceRemoved.apiMs)) },
  { label: "– CPU", unit: "CPU ms", of: perTakenRun(({ serviceRemoved: { cpu } }) => cpu && cpu * 1000) },
  { label: "rolling update of 100 endpoints", unit: "ms", of: perRun((run) => run.rollOut.ms) },
  { label: API, unit: "ms", of: perTakenRun((run) => run.rollOut.apiMs) },
  { label: "– CPU", unit: "CPU ms", of: perRun((run) => run.rollOut.cpu * 1000) },
  { label: "resident memory after the first sync", unit: "MB", of: perRun((run) => run.memory.synced) },
  { label: "– steady", unit: "MB", of: perRun((run) => run.memory.steady) },
  { label: "– peak", unit: "MB", of: perRun((run) => run.memory.peak) },
  { label: "CPU in an idle minute", unit: "CPU ms", of: perTakenRun((run) => run.idleCpu && run.idleCpu * 1000) },
];

/**
 * The table of a benchmark; without kube-proxy there is no ratio, and of one that was not waited for there is its start
 * only.
 */
export function rowsOf(fairlead: ProxyFigures, kubeProxy: ProxyFigures | Unfinished | undefined): readonly Row[] {
  return measures.flatMap(({ label, unit, of }): readonly Row[] => {
    const own = of(fairlead);
    if (own === undefined) return [];
    return [{ label, unit, fairlead: own, ...(kubeProxy && withKubeProxy(own, label === START, of, kubeProxy)) }];
  });
}

const HEADER = ["", "Fairlead", "kube-proxy", "ratio"];

export function markdownTable(rows: readonly Row[]): string {
  const lines = [HEADER, ["---", "--:", "--:", "--:"], ...rows.map(cells)];
  return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

/** The same with columns of one width, for a terminal. */
export function textTable(rows: readonly Row[]): string {
  const lines = [HEADER, ...rows.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((line) => `${line.map(text).join("  ").trimEnd()}\n`).join("");
}

/** A number with its unit, as exact as it is worth. */
export function quantity(value: number, unit: Unit): string {
  switch (unit) {
    case "ms":
    case "CPU ms":
      return value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
    case "MB":
      return `${value.toFixed(0)} MB`;
    case "bytes":
      return bytes(value);
    case "count":
      return value.toFixed(Number.isInteger(value) ? 0 : 1);
  }
}

/** kube-proxy's part of a row. */
function withKubeProxy(
  own: number,
  isStart: boolean,
  of: Measure["of"],
  other: ProxyFigures | Unfinished,
): Pick<Row, "kubeProxy" | "unfinished" | "ratio"> {
  if (!("unfinishedAfterMs" in other)) {
    const value = of(other);
    return value === undefined ? {} : { kubeProxy: value, ratio: own / value };
  }
  const { unfinishedAfterMs } = other;
  return isStart ? { kubeProxy: unfinishedAfterMs, unfinished: true, ratio: own / unfinishedAfterMs } : {};
}

function cells({ label, unit, fairlead, kubeProxy, unfinished, ratio }: Row): readonly string[] {
  const value = (number: number | undefined) => (number === undefined ? "" : quantity(number, unit));
  const [more, less] = unfinished ? ["> ", "< "] : ["", ""];
  const share = ratio === undefined ? "" : `${less}${ratio.toFixed(2)}`;
  return [label, value(fairlead), `${more}${value(kubeProxy)}`, share];
}

function bytes(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} MB`;
  return value >= 1e4 ? `${(value / 1e3).toFixed(0)} kB` : `${value.toFixed(0)} B`;
}

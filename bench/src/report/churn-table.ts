import type { ChurnResult, ChurnRun } from "../churn/figures.ts";
import { median } from "../measure/figures.ts";
import { markdownTable } from "./render.ts";
import type { Row, Unit } from "./rows.ts";

interface ChurnMeasure {
  readonly label: string;
  readonly unit: Unit;
  readonly of: (run: ChurnRun) => number;
}

const ROLLING = "rolling update of 100 endpoints: own time";

const measures: readonly ChurnMeasure[] = [
  { label: ROLLING, unit: "ms", of: ({ rolling }) => median(rolling.map(({ ownMs }) => ownMs)) },
  { label: "– each endpoint, median", unit: "ms", of: ({ rolling }) => median(rolling.map(({ each }) => each.median)) },
  { label: "– the API server before that", unit: "ms", of: ({ rolling }) => median(rolling.map(({ apiMs }) => apiMs)) },
  { label: "churn: request to kernel, median", unit: "ms", of: ({ churn }) => churn.total.median },
  { label: "– 99th percentile", unit: "ms", of: ({ churn }) => churn.total.p99 },
  { label: "– own time, median", unit: "ms", of: ({ churn }) => churn.own.median },
  { label: "– own time, 99th percentile", unit: "ms", of: ({ churn }) => churn.own.p99 },
  { label: "– the API server, median", unit: "ms", of: ({ churn }) => churn.api.median },
  { label: "– the API server, 99th percentile", unit: "ms", of: ({ churn }) => churn.api.p99 },
  { label: "API bytes of one change", unit: "bytes", of: ({ api }) => api.bytesPerChange },
  { label: "API bytes of a start", unit: "bytes", of: ({ api: { start } }) => start.list.bytes + start.watch.bytes },
  {
    label: "– requests",
    unit: "count",
    of: ({ api: { start } }) => start.list.requests + start.watch.requests + start.other.requests,
  },
];

/** Medians of the runs, Fairlead next to kube-proxy. */
export function churnRows({ proxies: { fairlead = [], "kube-proxy": kubeProxy = [] } }: ChurnResult): readonly Row[] {
  return measures.flatMap(({ label, unit, of }): readonly Row[] => {
    const [own, other] = [medianOf(fairlead, of), medianOf(kubeProxy, of)];
    if (own === undefined) return [];
    return [{ label, unit, fairlead: own, ...(other !== undefined && { kubeProxy: other, ratio: own / other }) }];
  });
}

function medianOf(runs: readonly ChurnRun[], of: ChurnMeasure["of"]): number | undefined {
  return runs.length === 0 ? undefined : median(runs.map(of));
}

export function churnTable(result: ChurnResult): string {
  return markdownTable(churnRows(result));
}

import type { ChurnResult, ChurnRun } from "../churn/figures.ts";
import type { FleetResult } from "../fleet.ts";
import { median } from "../measure/result.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";
import { between, machineText } from "./overview.ts";
import { markdownTable, quantity, type Row, type Unit } from "./rows.ts";

/** Above the table of what changes take, which is there once it is recorded. */
const CHURN_TEXT = `### When endpoints change

nftables mode: Kubernetes'
[SLI](https://github.com/kubernetes/community/blob/master/sig-scalability/slos/network_programming_latency.md) measured
from outside. **Own time** is from the API server's event to the kernel.
`;

const MARK = "<!-- Made by `pnpm bench --document` from bench/results/fleet.json and churn-*.json. -->";

/** Writes what is recorded of fleets and changes into a page. */
export function withClusterCost(page: string, churn: readonly ChurnResult[], fleet: FleetResult): string {
  const changes = churn.length === 0 ? [] : ["", CHURN_TEXT, changesTable(churn)];
  return between(page, MARK, [fleetTable(fleet, churn), ...changes].join("\n"));
}

export function churnTable(result: ChurnResult): string {
  return markdownTable(churnRows(result));
}

/** The rows of docs/performance.md, with their names there. */
const CHOSEN: Readonly<Record<string, string>> = {
  "rolling update of 100 endpoints: own time": "rolling update of 100 endpoints, own time",
  "– the API server before that": "the API server's part of it",
  "churn: request to kernel, median": "each of many changes, median",
  "– 99th percentile": "99th percentile",
  "– own time, 99th percentile": "99th percentile, own time",
  "API bytes of one change": "bytes from the API server for a change",
  "API bytes of a start": "bytes from the API server for a start",
};

function changesTable(results: readonly ChurnResult[]): string {
  const sorted = [...results].sort((a, b) => a.options.services - b.options.services);
  const lines = Object.entries(CHOSEN).map(([label, name]) => {
    const cells = sorted.map((result) => {
      const row = churnRows(result).find((one) => one.label === label);
      return row === undefined
        ? ""
        : pair(quantity(row.fairlead, row.unit), row.kubeProxy === undefined ? "–" : quantity(row.kubeProxy, row.unit));
    });
    return `| ${[name, ...cells].join(" | ")} |`;
  });
  const where = sorted.map(
    ({ options, machine }) => `${options.services.toLocaleString("en")} services: ${machineText(machine)}`,
  );
  return [
    `| | ${sorted.map(({ options }) => `${options.services.toLocaleString("en")} services`).join(" | ")} |`,
    `| --- |${" --: |".repeat(sorted.length)}`,
    ...lines,
    "",
    ...where.map((text) => `${text}.`),
  ].join("\n");
}

/** Of a fleet, with the bytes that one node was sent multiplied: nothing else is. */
function fleetTable({ agents, proxies }: FleetResult, churn: readonly ChurnResult[]): string {
  const of = (cell: (proxy: ProxyName) => string) => pair(cell("fairlead"), cell("kube-proxy"));
  const each = (value: (figures: FleetResult["proxies"][ProxyName]) => number) =>
    of((proxy) => Math.round(value(proxies[proxy])).toLocaleString("en"));
  const largest = [...churn].sort((a, b) => b.options.services - a.options.services)[0];
  const perChange = (proxy: ProxyName) => median((largest?.proxies[proxy] ?? []).map(({ api }) => api.bytesPerChange));
  const rows = [
    ["requests of one node in an hour", each(({ hour }) => perHour(hour))],
    ["requests of all in a second", of((proxy) => ((agents * perHour(proxies[proxy].hour)) / 3600).toFixed(0))],
    ...(largest === undefined
      ? []
      : [
          [
            "bytes to all nodes for one endpoint change (one node's, multiplied)",
            of((proxy) => quantity(agents * perChange(proxy), "bytes")),
          ],
        ]),
    ["API server away: attempts in a second", each(({ restart }) => restart.attemptsPerSecond)],
    ["back after a minute: most requests in a second", each(({ restart }) => restart.mostInASecond)],
    ["– requests", each(({ restart }) => restart.requests)],
    ["– refused with 429", each(({ restart }) => restart.refused)],
    ["– lists", each(({ restart }) => restart.lists)],
    ["– until all watches run again", of((proxy) => `${proxies[proxy].restart.seconds.toFixed(0)} s`)],
  ];
  return [
    `| | ${agents.toLocaleString("en")} nodes |`,
    "| --- | --: |",
    ...rows.map((cells) => `| ${cells.join(" | ")} |`),
  ].join("\n");
}

function perHour({ watches, lists, signs }: FleetResult["proxies"][ProxyName]["hour"]): number {
  return watches + lists + signs;
}

function pair(own: string, other: string): string {
  return `**${own}** / ${other}`;
}

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
function churnRows({ proxies: { fairlead = [], "kube-proxy": kubeProxy = [] } }: ChurnResult): readonly Row[] {
  return measures.flatMap(({ label, unit, of }): readonly Row[] => {
    const [own, other] = [medianOf(fairlead, of), medianOf(kubeProxy, of)];
    if (own === undefined) return [];
    return [{ label, unit, fairlead: own, ...(other !== undefined && { kubeProxy: other, ratio: own / other }) }];
  });
}

function medianOf(runs: readonly ChurnRun[], of: ChurnMeasure["of"]): number | undefined {
  return runs.length === 0 ? undefined : median(runs.map(of));
}

import { median } from "../measure/figures.ts";
import { PROXIES, type ProxyMeasurement, type WorkMeasurement } from "../measure/ipvs-figures.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";

/** What is compared of one run. */
type Figures = Omit<ProxyMeasurement, "kernel">;

interface Row {
  readonly work: string;
  readonly steps: (measured: Figures) => readonly WorkMeasurement[];
}

const rows: readonly Row[] = [
  { work: "full sync on an empty kernel", steps: ({ fullSync }) => [fullSync] },
  { work: "start over what is there", steps: ({ restart }) => [restart] },
  { work: "one endpoint for another", steps: ({ changes }) => changes },
  { work: "the first endpoint on this node", steps: ({ firstLocal }) => [firstLocal] },
];

/** Medians of both proxies side by side, as Markdown; the ratio is that of the times. */
export function comparison(results: readonly Figures[]): string {
  const lines = rows.map(({ work, steps }) => {
    const [upstream, ours] = PROXIES.map((name) => {
      const all = results.filter(({ proxy }) => proxy === name).flatMap(steps);
      return all.length === 0 ? undefined : summary(all);
    });
    const ratio = upstream && ours ? (ours.seconds / upstream.seconds).toFixed(2) : "";
    return `| ${[work, cell(upstream), cell(ours), ratio].join(" | ")} |`;
  });
  const memory = PROXIES.map((name) => median(valuesOf(results, name, ({ residentMiB }) => residentMiB)));
  const titles = ["", ...PROXIES, "ratio"];
  return [
    `| ${titles.join(" | ")} |`,
    `| ${titles.map(() => "---").join(" | ")} |`,
    ...lines,
    `| resident memory | ${memory.map((value) => (Number.isNaN(value) ? "" : `${value} MiB`)).join(" | ")} |  |`,
  ].join("\n");
}

interface Summary {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly processes: number;
}

function summary(steps: readonly WorkMeasurement[]): Summary {
  return {
    seconds: median(steps.map(({ seconds }) => seconds)),
    cpuSeconds: median(steps.map(({ cpuSeconds }) => cpuSeconds)),
    processes: median(steps.map(({ processes }) => Object.values(processes).reduce((sum, count) => sum + count, 0))),
  };
}

function cell(of: Summary | undefined): string {
  if (of === undefined) return "";
  return `${of.seconds.toFixed(2)} s, ${of.cpuSeconds.toFixed(2)} s CPU, ${of.processes} processes`;
}

function valuesOf(results: readonly Figures[], name: ProxyName, value: (one: Figures) => number): number[] {
  return results.filter(({ proxy }) => proxy === name).map(value);
}

/** What the kernel held after one proxy and not after the other; both should leave the same. */
export function kernelDifferences(results: readonly ProxyMeasurement[]): readonly string[] {
  const [upstream, ours] = PROXIES.map((name) => results.find(({ proxy }) => proxy === name)?.kernel);
  if (upstream === undefined || ours === undefined) return [];
  const [theirs, own] = [new Set(upstream), new Set(ours)];
  return [
    ...upstream.filter((line) => !own.has(line)).map((line) => `only after kube-proxy: ${line}`),
    ...ours.filter((line) => !theirs.has(line)).map((line) => `only after Fairlead: ${line}`),
  ];
}
